"""The templates of the bundled English pairs: ``python english_pairs.py FILE`` writes them.

In each group the words that are set against each other are right as often as wrong, so that a
liking for one of them is worth nothing.
"""

import csv
import sys
from itertools import product
from pathlib import Path

PEOPLE = ["Tom", "Ben", "Max", "Sam", "Jack"], ["Lily", "Mia", "Anna", "Sue", "Jane"]
ANIMALS = ["dog", "cat", "bird", "frog", "bear"]
THINGS = ["ball", "box", "hat", "cup", "toy"]


def plural(noun):
    return noun + ("es" if noun.endswith("x") else "s")


def both(template, first, second):
    """Give a pair each way: the template takes what decides, and then what is right."""
    (a, right), (b, other) = first, second
    yield template.format(a, right), template.format(a, other)
    yield template.format(b, other), template.format(b, right)


def agreement(singular, many, ends):
    for noun, end in product(ANIMALS, ends):
        yield from both(f"The {{}} {{}} {end}.", (noun, singular), (plural(noun), many))


def verbs():
    for noun, verb in product(ANIMALS, ["like", "see", "want"]):
        ends = {"like": "the rain", "see": "a tree", "want": "some milk"}
        yield from both(
            f"The {{}} {{}} {ends[verb]}.", (noun, f"{verb}s"), (plural(noun), verb)
        )


def distractors():
    for noun, end in product(THINGS, ["red", "very old", "under the bed"]):
        first, second = (
            (f"{noun} near the trees", "is"),
            (f"{plural(noun)} near the tree", "are"),
        )
        yield from both(f"The {{}} {{}} {end}.", first, second)


def tense():
    verbs = [
        "walk",
        "jump",
        "play",
        "look",
        "cook",
        "help",
        "talk",
        "paint",
        "climb",
        "clean",
        "open",
        "push",
        "kick",
        "wash",
        "pull",
    ]
    for verb in verbs:
        yield from both(
            "{} {} again.", ("Yesterday they", f"{verb}ed"), ("They will", verb)
        )


def participles():
    verbs = [
        "saw seen",
        "went gone",
        "ate eaten",
        "took taken",
        "gave given",
        "broke broken",
        "wrote written",
        "fell fallen",
        "flew flown",
        "drove driven",
        "hid hidden",
        "chose chosen",
        "forgot forgotten",
        "rode ridden",
        "grew grown",
    ]
    for past, participle in map(str.split, verbs):
        ends = {
            "saw": " it",
            "ate": " it",
            "took": " it",
            "gave": " it away",
            "broke": " it",
            "wrote": " it",
            "chose": " it",
            "forgot": " it",
            "hid": " it",
        }
        end = ends.get(past, {"fell": " down", "grew": " up"}.get(past, " away"))
        yield from both(f"{{}} {{}}{end}.", ("Then he", past), ("He has", participle))


def progressive():
    verbs = [
        "sing",
        "eat",
        "jump",
        "play",
        "sleep",
        "walk",
        "read",
        "cry",
        "fly",
        "climb",
        "help",
        "talk",
        "look",
        "cook",
        "draw",
    ]
    for verb in verbs:
        yield from both("{} {} now.", ("She is", f"{verb}ing"), ("She can", verb))


def articles():
    vowel = [
        "apple",
        "egg",
        "orange",
        "old hat",
        "ant",
        "owl",
        "onion",
        "ice cream",
        "umbrella",
        "animal",
        "ugly frog",
        "open box",
        "elephant",
        "idea",
        "engine",
    ]
    other = [
        "banana",
        "dog",
        "carrot",
        "new hat",
        "bee",
        "bird",
        "potato",
        "cookie",
        "blanket",
        "monster",
        "pretty frog",
        "closed box",
        "lion",
        "plan",
        "car",
    ]
    for a, b in zip(vowel, other, strict=True):
        yield f"It was an {a}.", f"It was a {a}."
        yield f"It was a {b}.", f"It was an {b}."


def determiners():
    for noun, (one, many) in product(
        [*ANIMALS, *THINGS, "book", "tree", "flower", "girl", "boy"],
        [("this", "these")],
    ):
        yield f"I like {one} {noun} a lot.", f"I like {many} {noun} a lot."
        yield (
            f"I like {many} {plural(noun)} a lot.",
            f"I like {one} {plural(noun)} a lot.",
        )


def numbers():
    for noun, verb in product(ANIMALS, ["see", "hear", "draw"]):
        yield from both(
            f"I can {verb} {{}} {{}} here.", ("one", noun), ("two", plural(noun))
        )


def possessives():
    for (he, she), thing in product(zip(*PEOPLE, strict=True), ["hat", "ball", "mom"]):
        yield from both(f"{{}} looked for {{}} {thing}.", (he, "his"), (she, "her"))


def cases():
    for (subject, other), noun in product(
        [("I", "me"), ("he", "him"), ("she", "her"), ("we", "us"), ("they", "them")],
        ["dog", "boy", "girl"],
    ):
        ends = (f"{subject} saw the {noun}", f"{other} saw the {noun}")
        yield f"Then {ends[0]}.", f"Then {ends[1]}."
        yield f"Then the {noun} saw {other}.", f"Then the {noun} saw {subject}."


def reflexives():
    people = [
        ("boy", "girl"),
        ("man", "woman"),
        ("king", "queen"),
        ("father", "mother"),
        ("brother", "sister"),
    ]
    for (he, she), verb in product(people, ["hurt", "saw", "washed"]):
        yield from both(f"The {{}} {verb} {{}}.", (he, "himself"), (she, "herself"))


def quotes():
    for who, what in product(["Tom", "Lily", "Mom"], ANIMALS):
        yield (
            f'{who} said, "I see a {what}." Then',
            f'{who} said, "I see a {what}. Then',
        )
        yield f"{who} could see a {what}. Then", f'{who} could see a {what}." Then'


def brackets():
    for animal, thing in product(ANIMALS, ["ball", "hat", "cup"]):
        yield (
            f"The {animal} (it had a {thing}) was happy.",
            f"The {animal} (it had a {thing} was happy.",
        )
        yield (
            f"The {animal} with a {thing} was happy.",
            f"The {animal} with a {thing}) was happy.",
        )


def questions():
    for who, word in product(
        ["Tom", "Lily", "the dog", "the cat", "Mom"], ["Where", "Who", "How"]
    ):
        yield f"{word} is {who}? Then", f"{word} is {who}. Then"
        place = {"Where": "at home", "Who": "happy", "How": "here"}[word]
        start = f"{who[0].upper()}{who[1:]}"
        yield f"{start} is {place}. Then", f"{start} is {place}? Then"


def negation():
    for who, (verb, adjective) in product(
        ["Tom", "Lily", "The dog"],
        [
            ("sleep", "sad"),
            ("run", "hungry"),
            ("sing", "big"),
            ("eat", "happy"),
            ("cry", "old"),
        ],
    ):
        yield from both(f"{who} {{1}} not {{0}}.", (verb, "does"), (adjective, "is"))


OPPOSITES = [
    ("ice", "cold", "fire", "hot"),
    ("elephant", "big", "ant", "small"),
    ("snow", "white", "night", "black"),
    ("turtle", "slow", "rabbit", "fast"),
    ("rock", "hard", "pillow", "soft"),
    ("baby", "young", "grandma", "old"),
    ("feather", "light", "stone", "heavy"),
    ("sun", "bright", "cave", "dark"),
    ("river", "wet", "desert", "dry"),
    ("candy", "sweet", "lemon", "sour"),
    ("mouse", "quiet", "lion", "loud"),
    ("giant", "tall", "mouse", "short"),
    ("winner", "happy", "loser", "sad"),
    ("monster", "bad", "angel", "good"),
    ("sky", "high", "floor", "low"),
]


def opposites():
    for a, right, b, other in OPPOSITES:
        yield from both(
            "The {0} is {1}.",
            (f"{a} is not {other}. The {a}", right),
            (f"{b} is not {right}. The {b}", other),
        )


def comparatives():
    stems = [
        "tall",
        "small",
        "fast",
        "slow",
        "old",
        "young",
        "cold",
        "warm",
        "long",
        "short",
        "strong",
        "soft",
        "loud",
        "quick",
        "kind",
    ]
    for stem in stems:
        yield f"It is {stem}er than that.", f"It is {stem} than that."
        yield f"It is as {stem} as that.", f"It is as {stem}er as that."


def word_order():
    for adjective, noun in product(
        ["red", "big", "old", "little", "nice"], [*ANIMALS, "box"]
    ):
        yield (
            f"She saw the {adjective} {noun} today.",
            f"She saw the {noun} {adjective} today.",
        )


FACTS = [
    ("sleep in a", "bed", "drink from a", "cup"),
    ("see with my", "eyes", "hear with my", "ears"),
    ("cut bread with a", "knife", "eat soup with a", "spoon"),
    ("swim in the", "water", "walk on the", "road"),
    ("buy food at the", "store", "learn at the", "school"),
    ("wear shoes on my", "feet", "wear a hat on my", "head"),
    ("get milk from a", "cow", "get eggs from a", "chicken"),
    ("read a", "book", "drive a", "car"),
    ("kick the", "ball", "eat the", "cake"),
    ("open the", "door", "climb the", "tree"),
    ("sit on a", "chair", "put flowers in a", "vase"),
    ("see the sun by", "day", "see the moon by", "night"),
    ("wash my hands with", "soap", "draw a house with", "crayons"),
    ("blow out the", "candle", "ring the", "bell"),
    ("play in the snow in", "winter", "play on the beach in", "summer"),
]


def knowledge():
    for a, right, b, other in FACTS:
        yield from both("I {} {}.", (a, right), (b, other))


COUNT = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]


def sums():
    pairs = [(a, b) for a in range(1, 9) for b in range(1, 10 - a)]
    pairs = [pair for pair in pairs if sum(pair) < 10][::2][:15]
    for a, b in pairs:
        first = f"{COUNT[a - 1].capitalize()} plus {COUNT[b - 1]} is"
        more = f"{COUNT[a].capitalize()} plus {COUNT[b - 1]} is"
        yield from both("{} {}.", (first, COUNT[a + b - 1]), (more, COUNT[a + b]))


def counting():
    starts = [(a, b) for a in range(7) for b in range(a + 1, 7)][:15]
    for starting in starts:
        ends = [(", ".join(COUNT[a : a + 3]), COUNT[a + 3]) for a in starting]
        yield from both("We count: {}, {}.", *ends)


GROUPS = {
    "agreement of is and are": agreement(
        "is", "are", ["happy", "in the house", "very big"]
    ),
    "agreement of has and have": agreement(
        "has", "have", ["a home", "two eyes", "some food"]
    ),
    "agreement of verbs": verbs(),
    "agreement over another noun": distractors(),
    "past tense and will": tense(),
    "past and participle": participles(),
    "is doing and can do": progressive(),
    "a and an": articles(),
    "this and these": determiners(),
    "plural after numbers": numbers(),
    "his and her": possessives(),
    "I and me": cases(),
    "himself and herself": reflexives(),
    "closing quotes": quotes(),
    "closing brackets": brackets(),
    "question marks": questions(),
    "does not and is not": negation(),
    "opposites": opposites(),
    "bigger than, as big as": comparatives(),
    "adjective before noun": word_order(),
    "everyday knowledge": knowledge(),
    "sums to ten": sums(),
    "counting": counting(),
}


def rows():
    return [
        (right, wrong, group)
        for group, pairs in GROUPS.items()
        for right, wrong in pairs
    ]


if __name__ == "__main__":
    with Path(sys.argv[1]).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("right", "wrong", "group"))
        writer.writerows(rows())
