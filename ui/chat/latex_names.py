"""Names that LaTeX formulas use, and what is shown for them."""

from __future__ import annotations

# What pylatexenc's table of symbols has no text for, or another one than formulas want.
SYMBOLS = {
    "cdot": "·", "dots": "…", "ldots": "…", "cdots": "⋯", "vdots": "⋮", "ddots": "⋱", "to": "→", "gets": "←",
    "iff": "⟺", "implies": "⟹", "land": "∧", "lor": "∨", "lnot": "¬", "neg": "¬", "mid": "∣", "colon": ":",
    "lbrace": "{", "rbrace": "}", "lvert": "|", "rvert": "|", "vert": "|", "lVert": "‖", "rVert": "‖",
    "Vert": "‖", "|": "‖", "langle": "⟨", "rangle": "⟩", "lfloor": "⌊", "rfloor": "⌋", "lceil": "⌈",
    "rceil": "⌉", "prime": "′", "ast": "∗", "star": "⋆", "epsilon": "ϵ", "varepsilon": "ε", "phi": "ϕ",
    "varphi": "φ", "emptyset": "∅", "varnothing": "∅", "blacksquare": "■", "square": "□", "qed": "∎",
    "therefore": "∴", "because": "∵", "degree": "°", "checkmark": "✓", "complement": "∁", "setminus": "∖",
    "ell": "ℓ", "hbar": "ℏ", "Re": "ℜ", "Im": "ℑ", "aleph": "ℵ", "imath": "ı", "jmath": "ȷ", "hslash": "ℏ",
    "%": "%", "$": "$", "&": "&", "#": "#", "_": "_", "{": "{", "}": "}",
}  # fmt: skip
SPACES = {
    ",": " ", ":": " ", ">": " ", ";": " ", " ": " ", "~": " ", "!": "", "quad": "  ", "qquad": "    ",
    "enspace": " ", "thinspace": " ", "medspace": " ", "thickspace": " ", "/": "", "\n": " ",
}  # fmt: skip
WORDS = frozenset({
    "arccos", "arcsin", "arctan", "arg", "cos", "cosh", "cot", "coth", "csc", "deg", "det", "dim",
    "exp", "gcd", "hom", "inf", "ker", "lg", "lim", "liminf", "limsup", "ln", "log", "max", "min",
    "mod", "Pr", "sec", "sin", "sinh", "sup", "tan", "tanh", "argmax", "argmin",
})  # fmt: skip
# These change only size, place or numbering; what they are given stays.
PLAIN = frozenset({
    "big", "Big", "bigg", "Bigg", "bigl", "bigr", "Bigl", "Bigr", "biggl", "biggr", "Biggl", "Biggr",
    "displaystyle", "textstyle", "scriptstyle", "limits", "nolimits", "nonumber", "notag", "boxed",
    "smash", "overbrace", "underbrace", "textcolor",
})  # fmt: skip
IGNORED = frozenset({
    "hline", "phantom", "hphantom", "vphantom", "label", "color", "mathstrut", "allowbreak",
})  # fmt: skip
TEXT = frozenset({
    "text", "textrm", "textbf", "textit", "textsf", "texttt", "mbox", "mathrm", "operatorname",
    "operatorname*", "mathop",
})  # fmt: skip
ALPHABETS = {
    "mathbb": "DOUBLE-STRUCK", "Bbb": "DOUBLE-STRUCK", "mathcal": "SCRIPT", "mathscr": "SCRIPT",
    "mathfrak": "FRAKTUR", "mathbf": "BOLD", "boldsymbol": "BOLD", "bm": "BOLD", "mathsf": "SANS-SERIF",
    "mathtt": "MONOSPACE", "mathit": "", "mathnormal": "",
}  # fmt: skip
ACCENTS = {
    "hat": "\u0302", "widehat": "\u0302", "bar": "\u0304", "vec": "\u20d7", "tilde": "\u0303",
    "widetilde": "\u0303", "dot": "\u0307", "ddot": "\u0308", "check": "\u030c", "breve": "\u0306",
    "acute": "\u0301", "grave": "\u0300", "mathring": "\u030a",
}  # fmt: skip
LINES = {"overline": "\u0305", "underline": "\u0332"}
NEGATED = {
    "=": "≠",
    "∈": "∉",
    "⊂": "⊄",
    "⊆": "⊈",
    "∣": "∤",
    "≡": "≢",
    "∃": "∄",
    "<": "≮",
    ">": "≯",
    "≤": "≰",
}
ROOTS = {"3": "∛", "4": "∜"}
LARGE = "∑∏∐∫∮∬∭√∂∇∞⋃⋂⋁⋀¬…⋯⋮⋱∠∅′∀∃°\u2200"
SUMS = frozenset("∑∏∐∫∮∬∭⋃⋂⋁⋀")
OPERATORS = frozenset("=<>≤≥≠≈≡∼→←⟶⟺⟹⇒⇔∈∉⊂⊆∪∩∧∨×÷±∓+−")
ROWS = (
    "aligned",
    "align",
    "align*",
    "gathered",
    "gather",
    "gather*",
    "split",
    "equation",
    "equation*",
    "cases",
)
BRACKETS = {
    "matrix": "  ", "pmatrix": "()", "bmatrix": "[]", "Bmatrix": "{}", "vmatrix": "||", "Vmatrix": "‖‖",
    "smallmatrix": "()",
}  # fmt: skip
