"""Many runs on many boxes: the queue, the workers, the page."""
