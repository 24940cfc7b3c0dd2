"""Path patching: effects of senders through receivers."""
