// On paper everything is open.
(() => {
  "use strict";
  let closed = [];
  window.addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("main.sp details:not([open])")];
    closed.forEach((fold) => { fold.open = true; });
  });
  window.addEventListener("afterprint", () => { closed.forEach((fold) => { fold.open = false; }); });
})();
