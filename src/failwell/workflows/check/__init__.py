"""What a plan means as a whole: everything that can be found wrong before a run begins.

`whole.check` takes a compiled plan and returns every mistake at once, each with its place and what
to do about it; `files.check_file` compiles, checks and follows sub-workflows; `given.check_inputs`
looks at the inputs of one run. Each rule takes time that grows with the file and no faster.
"""
