"""What a concept fires on: its tokens, its contexts, and a name where it has earned one."""
