"""From a plan to finished cells: tasks in their order, here or in other processes."""
