"""Jobs on Temporal: submitted as workflows, and run by the local queue of the machine that takes them."""
