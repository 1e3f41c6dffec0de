"""What others recorded: a folder of outputs as people paste them into bug reports, or a ``cilium sysdump``; read as a Recording.

whatis      what a file is, by its content, else by its name
hints       the folder's own recording.yaml, which says what files do not
source      the files of a folder, a zip or a tar, by path
sysdump     which file of a sysdump is what
documents   API objects ↔ the documents that parse_kubernetes takes
reader      all files → who said what when
derive      the Services that rules and lists tell of, where no Service list is there
"""
