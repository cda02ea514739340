"""Messages on links between brokers and the controller."""
