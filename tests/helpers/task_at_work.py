"""Which task of a study is at work, for counts of what each of them does."""

from ontogeny.study.running import run as running


class TaskAtWork:
    """Holds in `label` which task is computed in this process, "" between tasks.

    `patch` is pytest's, and says until when.
    """

    def __init__(self, patch):
        self.label = ""
        self._compute = running.compute_task
        patch.setattr(running, "compute_task", self._computing)

    def _computing(self, job, task):
        self.label = task.label
        try:
            return self._compute(job, task)
        finally:
            self.label = ""
