"""What a plan means as a whole: everything that can be found wrong before a run begins.

`rules.check` takes a compiled plan and returns every mistake at once, each with its place and what
to do about it; `workflow_tree` compiles, checks and follows sub-workflows. Each rule takes time that grows with the file and no faster.
"""
