"""What each build of llama-server does with context checkpoints: the table, the rules, the memories."""
