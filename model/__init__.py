"""A model of the exactly-once protocol, small enough to be searched exhaustively.

Two drivers, their tasks, commands, the ledger, the S3 store and the consumer group are one tuple (`world.World`); each
step is one effect on the outside world, and the search takes every order of steps. A crash is a driver that never moves
again, a sleep one that moves much later, so both stand between any two effects without a step of their own.

    search      breadth first search, counter-examples as traces
    world       what a state is made of
    ledger      the project's own records and states, and its own pure decisions on them
    sentences   the sentences of the promises, each of which can be taken out
    cutting     what a round's task makes of records
    beginning   where a case begins
    starting · rounds · publishing · snapshots · commands · faults     the steps
    generations what a reset begins, and what is proved of each generation
    invariants  what must hold
    protocol    all of it together
"""
