"""What must hold of every parser, whatever it is given; inputs are made up by hypothesis."""
