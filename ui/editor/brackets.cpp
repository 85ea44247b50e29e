// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/editor/brackets.h"

#include "ui/highlight/documenthighlighter.h"

#include <QTextBlock>
#include <QTextDocument>

namespace klineage::ui {

namespace {

constexpr QStringView openers = u"([{";
constexpr QStringView closers = u")]}";
constexpr int farthest = 100000;

bool isCode(const QTextBlock &block, int unit)
{
    const TokenStyle style = DocumentHighlighter::styleAt(block, unit);
    return style != TokenStyle::Comment && style != TokenStyle::String && style != TokenStyle::Escape;
}

BracketPair partnerOf(const QTextDocument &document, int position)
{
    QTextBlock block = document.findBlock(position);
    int unit = position - block.position();
    const QString text = block.text();
    if (unit >= text.size() || !isCode(block, unit))
        return {};
    const QChar bracket = text.at(unit);
    const bool forward = openers.contains(bracket);
    if (!forward && !closers.contains(bracket))
        return {};

    BracketPair pair{position, -1, false};
    int depth = 0;
    for (int steps = 0; block.isValid() && steps < farthest;) {
        const QString line = block.text();
        for (; unit >= 0 && unit < line.size(); unit += forward ? 1 : -1, ++steps) {
            const QChar c = line.at(unit);
            const bool opens = openers.contains(c);
            if ((!opens && !closers.contains(c)) || !isCode(block, unit))
                continue;
            depth += opens == forward ? 1 : -1;
            if (depth == 0) {
                pair.second = block.position() + unit;
                const qsizetype kind = forward ? openers.indexOf(bracket) : closers.indexOf(bracket);
                pair.mismatched = kind != (forward ? closers.indexOf(c) : openers.indexOf(c));
                return pair;
            }
        }
        block = forward ? block.next() : block.previous();
        unit = forward ? 0 : static_cast<int>(block.text().size()) - 1;
        ++steps;
    }
    return pair;
}

} // namespace

BracketPair bracketPairAt(const QTextDocument &document, int position)
{
    if (position > 0) {
        const BracketPair before = partnerOf(document, position - 1);
        if (before.first >= 0)
            return before;
    }
    return partnerOf(document, position);
}

} // namespace klineage::ui
