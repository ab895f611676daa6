"""What is demanded of governance documents: one rule a class, one module a kind of document.

The name of the class is the code (`SectionMissing` is `section_missing`), the docstring its title and its
reason. Lists called `RULES` say which are run; nothing is registered behind anyone's back.
"""
