"""What the machine has, what each instance was seen to need, and whose memory makes room."""
