"""What a mechanism is: bodies, hinges, nodes, loops and couplings."""
