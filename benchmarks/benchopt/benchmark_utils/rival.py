"""What all solvers share: the race towards smaller tolerances, and its end."""

from __future__ import annotations

import multiprocessing
import os
import time
import warnings
from contextlib import contextmanager

from benchopt import BaseSolver
from benchopt.stopping_criterion import StoppingCriterion

from .models import GOAL

LIMIT = 20_000
"""Passes that a rival may take in one run, where it lets them be limited."""

SECONDS = 60.0
"""Seconds after which a run in a process of its own is ended."""

WARM = 1.0
"""Seconds below which a run in a process of its own is timed a second time: in the first one it touches its memory anew."""

FORK = multiprocessing.get_context("fork")
"""How a process of a run begins: with what its parent holds."""


class Certified(StoppingCriterion):
    """The end of a race: a certified gap of `GOAL`, or as many tolerances in a row as ``patience`` without a smaller gap."""

    def __init__(self, goal=GOAL, patience=4, strategy=None, key_to_monitor="value", minimize=True):
        super().__init__(goal=goal, patience=patience, strategy=strategy, key_to_monitor=key_to_monitor, minimize=minimize)
        self.goal, self.patience = goal, patience

    def check_convergence(self, objective_list):
        """Tell whether to stop."""
        gaps = [found[self.key_to_monitor_] for found in objective_list]
        stuck = len(gaps) > self.patience and min(gaps[-self.patience :]) >= min(gaps[: -self.patience])
        return gaps[-1] <= self.goal or stuck, 0.0


class Rival(BaseSolver):
    """A solver of some models, run at tolerances that fall by ten."""

    sampling_strategy = "tolerance"
    stopping_criterion = Certified(strategy="tolerance")
    models = ()
    endless = False
    """Whether runs may ignore both limits of passes and signals, and take place in processes of their own."""

    def skip(self, name, problem):
        """Leave out the problems that the package does not solve."""
        return name not in self.models, f"{self.name} does not minimise {name}" if name not in self.models else None

    def set_objective(self, name, problem):
        """Keep the problem."""
        self.model, self.problem, self.found, self.processor, self.ended = name, problem, problem.start(), 0.0, False

    def run(self, tolerance):
        """Fit at a tolerance; the first one of benchopt, nearly infinite, is the point with nothing learned."""
        if tolerance > 1.0:
            self.found, self.processor, self.ended = self.problem.start(), 0.0, False
        elif not self.endless:
            self.found, self.processor = self.timed(tolerance)
        elif not self.ended:
            self.run_apart(tolerance)

    def timed(self, tolerance):
        """Return the point found at a tolerance and its processor seconds."""
        with warnings.catch_warnings(), quiet():
            warnings.simplefilter("ignore")  # of what did not converge: the certificate says it
            start = time.process_time()
            found = self.solve(self.problem, tolerance)
            return found, time.process_time() - start

    def run_apart(self, tolerance):
        """Fit in a process that can be ended; after that no smaller tolerance is tried."""
        receive, send = FORK.Pipe(duplex=False)
        child = FORK.Process(target=self.fit_apart, args=(tolerance, send), daemon=True)
        child.start()
        send.close()
        self.ended = not receive.poll(SECONDS)
        if self.ended:
            child.kill()
        else:
            answer = receive.recv()
            if isinstance(answer, Exception):
                raise answer
            self.found, self.processor = answer
        child.join()

    def fit_apart(self, tolerance, send):
        """Send the point found at a tolerance with its processor seconds, or what was raised."""
        try:
            found, seconds = self.timed(tolerance)
            if seconds < WARM:
                found, seconds = self.timed(tolerance)
            send.send((found, seconds))
        except Exception as error:
            send.send(error)

    def get_next(self, tolerance):
        """Return the next tolerance."""
        return 0.1 if tolerance > 1.0 else max(0.1 * tolerance, 1e-12)

    def get_result(self):
        """Return the point and the processor seconds of the run that found it, which other programs on the machine do not lengthen."""
        return {"point": self.found, "processor": self.processor}


@contextmanager
def quiet():
    """Send what compiled code prints to nowhere."""
    kept = [os.dup(1), os.dup(2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for number in (1, 2):
            os.dup2(nowhere, number)
        yield
    finally:
        for number, old in zip((1, 2), kept, strict=True):
            os.dup2(old, number)
            os.close(old)
        os.close(nowhere)
