"""The `summula` command. Nothing heavy is imported until a command needs it."""
