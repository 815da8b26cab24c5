"""Control of motion and force: selections, servos, compliant surfaces, impacts."""
