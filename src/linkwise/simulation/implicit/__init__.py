"""Steps of time with impulses: dampers and springs implicit, contacts, limits and friction hard."""
