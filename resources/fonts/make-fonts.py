#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes the bundled fonts from the upstream families: make-fonts.py INTER_DIR JETBRAINS_MONO_DIR OUT_DIR

Only needed to renew them (needs fontTools). Inter gets its tabular digits as the default ones, because Qt before 6.7 cannot
ask for a font feature, and columns of numbers must line up; JetBrains Mono loses its code ligatures, because a review shows
what is in the file. Both keep Latin, Greek, Cyrillic, punctuation, arrows, mathematics and geometric shapes.
"""
import sys
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont

RANGES = [(0x20, 0x17F), (0x2B0, 0x2FF), (0x300, 0x30C), (0x370, 0x3FF), (0x400, 0x45F), (0x1E00, 0x1EFF),
          (0x2000, 0x206F), (0x2070, 0x209F), (0x20A0, 0x20BF), (0x2100, 0x214F), (0x2190, 0x21FF), (0x2200, 0x22FF),
          (0x2300, 0x23FF), (0x2500, 0x25FF), (0x2600, 0x26FF), (0x2700, 0x27BF)]
DEFAULT_FORMS = "0123456789+\u2212"


def tabular_by_default(font):
    """Maps digits and signs to the glyphs that the feature tnum puts in their place."""
    gsub = font["GSUB"].table
    lookups = {i for r in gsub.FeatureList.FeatureRecord if r.FeatureTag == "tnum" for i in r.Feature.LookupListIndex}
    mapping = {}
    for index in lookups:
        for table in gsub.LookupList.Lookup[index].SubTable:
            table = getattr(table, "ExtSubTable", table)
            mapping.update(getattr(table, "mapping", {}))
    for table in font["cmap"].tables:
        for character in DEFAULT_FORMS:
            glyph = table.cmap.get(ord(character))
            if glyph in mapping:
                table.cmap[ord(character)] = mapping[glyph]


def rename(font, family, style):
    names = font["name"]
    full = f"{family} {style}"
    legacy = (family, style) if style in ("Regular", "Italic", "Bold") else (full, "Regular")
    texts = {1: legacy[0], 2: legacy[1], 3: f"{full}; klineage", 4: full, 6: full.replace(" ", "").replace(family.replace(" ", ""),
             family.replace(" ", "") + "-"), 16: family, 17: style}
    for record in list(names.names):
        if record.nameID in (21, 22, 25):
            names.removeNames(nameID=record.nameID)
    for name_id, text in texts.items():
        names.removeNames(nameID=name_id)
        names.setName(text, name_id, 3, 1, 0x409)
    if "CFF " in font:
        cff = font["CFF "].cff
        cff.fontNames[0] = texts[6]
        cff.topDictIndex[0].FamilyName = family
        cff.topDictIndex[0].FullName = full


def make(source, target, family, style, features, prepare=None):
    font = TTFont(source)
    if prepare:
        prepare(font)
    options = subset.Options(layout_features=features, name_IDs=["*"], name_languages=["*"], notdef_outline=True,
                             hinting=True, desubroutinize=False)
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=[c for low, high in RANGES for c in range(low, high + 1)])
    subsetter.subset(font)
    rename(font, family, style)
    font.save(target)
    print(target, Path(target).stat().st_size)


def main():
    inter, mono, out = (Path(a) for a in sys.argv[1:4])
    text_features = ["kern", "mark", "mkmk", "ccmp", "locl"]
    for style in ("Regular", "Medium", "SemiBold", "Italic"):
        make(inter / f"Inter-{style}.otf", out / f"InterTabular-{style}.otf", "Inter Tabular", style, text_features,
             tabular_by_default)
    for style in ("Regular", "Italic", "Bold"):
        make(mono / f"JetBrainsMono-{style}.ttf", out / f"JetBrainsMonoNL-{style}.ttf", "JetBrains Mono NL", style,
             ["mark", "mkmk", "ccmp", "locl"])


main()
