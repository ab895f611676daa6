"""The rules about governance documents: one class per rule, one module per kind of document.

The name of the class is the code (`ChecklistNumbered` is `checklist_numbered`), the docstring its title, its reason and
its remedy. `workpacket.rules.rule` runs every class with a remedy, in the modules that it or the kind of document
lists.
"""
