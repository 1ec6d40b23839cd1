PATH="x"
def write(kept, given): pass
