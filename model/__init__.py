"""A model of the exactly-once protocol that is small enough to be searched exhaustively.

One tuple (`model_state.ModelState`) holds two drivers, their tasks, commands, the ledger, the S3 store and the consumer
group. Each step is one effect outside the process; the search takes every order of steps. A crashed driver takes no
further step, and a sleeping driver takes its next step much later. Both need no step of their own, and can happen
between any two effects.

    search          breadth-first search; counter-examples as traces
    model_state     the parts of a state
    ledger          the sink's own records, states and pure decisions
    protocol_rules  the rules of the promises; each can be omitted
    writing         the work of a round's task
    initial_states  the first state of a case
    starting · rounds · publishing · topic · snapshots · commands · repairs · faults     the steps
    generations     what a reset starts, and the proof of each generation
    invariants      what every state must satisfy
    protocol        all steps together
    exploration     searches a case; steps and invariants are computed once for the parts they depend on
"""
