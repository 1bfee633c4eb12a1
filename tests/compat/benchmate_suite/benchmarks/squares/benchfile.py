from milabench.commands import PackCommand, VoirCommand
from milabench.pack import Package


class Squares(Package):
    base_requirements = "requirements.in"
    main_script = "squares"

    def build_run_plan(self):
        main = PackCommand(self, *self.argv, lazy=True)
        return main.use_stdout() if "--hidden" in self.argv else VoirCommand(main, cwd=self.dirs.code)


__pack__ = Squares
