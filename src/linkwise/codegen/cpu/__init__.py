"""Machine code for this computer, through LLVM."""
