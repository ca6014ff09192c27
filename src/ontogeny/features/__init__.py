"""What is measured, a folder for each feature: array functions, observables, figures and words.

No feature imports another. What two of them share stands above them.
"""
