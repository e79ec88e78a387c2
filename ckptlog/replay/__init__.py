"""What the server did, and would have done under other flags: the checkpoint policy run on a log's turns."""
