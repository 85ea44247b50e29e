// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/highlight/documenthighlighter.h"

#include <QElapsedTimer>
#include <QTextDocument>
#include <QTextLayout>

#include <algorithm>

namespace klineage::ui {

struct DocumentHighlighter::BlockData : QTextBlockUserData {
    LineHighlighter::State after;
    LineRuns runs;
    bool isGuess = true; ///< its state is not to be built upon
};

DocumentHighlighter::DocumentHighlighter(QTextDocument *document, Language language, QObject *parent)
    : QObject(parent)
    , m_document(document)
    , m_highlighter(language)
{
    m_timer.setSingleShot(true);
    connect(&m_timer, &QTimer::timeout, this, &DocumentHighlighter::work);
    connect(document, &QTextDocument::contentsChange, this, &DocumentHighlighter::onContentsChange);
}

void DocumentHighlighter::setPalette(const CodePalette &palette)
{
    m_palette = palette;
    onContentsChange(0, 0, m_document->characterCount());
}

void DocumentHighlighter::setVisible(int firstBlock, int lastBlock)
{
    m_firstVisible = firstBlock;
    m_lastVisible = lastBlock;
    m_guessed = false;
}

void DocumentHighlighter::onContentsChange(int position, int, int added)
{
    const int first = std::max(0, m_document->findBlock(position).blockNumber());
    const QTextBlock last = m_document->findBlock(position + added);
    m_next = m_next < 0 ? first : std::min(m_next, first);
    m_mustReach = std::max(m_mustReach, last.isValid() ? last.blockNumber() : m_document->blockCount() - 1);
    m_guessed = false;
    // Typing shows at once; a file that was just opened waits for the event loop.
    if (added < 200)
        work();
    else
        m_timer.start(0);
}

LineHighlighter::State DocumentHighlighter::stateBefore(const QTextBlock &block) const
{
    const auto *data = static_cast<const BlockData *>(block.previous().userData());
    return data ? data->after : LineHighlighter::State();
}

bool DocumentHighlighter::highlightBlock(QTextBlock &block, const LineHighlighter::State &before, bool guess)
{
    auto *data = static_cast<BlockData *>(block.userData());
    const bool wasKnown = data && !data->isGuess;
    if (!data) {
        data = new BlockData; // owned by the block
        block.setUserData(data);
    }
    LineRuns runs;
    const LineHighlighter::State after = m_highlighter.highlight(block.text(), before, runs);
    const bool sameEnd = wasKnown && data->after == after;
    data->after = after;
    data->isGuess = guess;
    data->runs = std::move(runs);
    QList<QTextLayout::FormatRange> formats;
    for (const TokenRun &run : data->runs) {
        QTextLayout::FormatRange range;
        range.start = run.begin;
        range.length = run.length;
        range.format.setForeground(m_palette.token(run.style));
        if (isItalic(run.style)) // a format that says anything of the font makes Qt look for the font anew
            range.format.setFontItalic(true);
        formats.append(range);
    }
    if (formats != block.layout()->formats()) {
        block.layout()->setFormats(formats);
        m_document->markContentsDirty(block.position(), block.length());
    }
    return sameEnd;
}

void DocumentHighlighter::guessVisible()
{
    m_guessed = true;
    if (m_next >= m_firstVisible || m_firstVisible - m_next < 200)
        return; // the visible blocks come soon enough
    LineHighlighter::State state;
    for (QTextBlock block = m_document->findBlockByNumber(m_firstVisible);
         block.isValid() && block.blockNumber() <= m_lastVisible; block = block.next()) {
        highlightBlock(block, state, true);
        state = static_cast<const BlockData *>(block.userData())->after;
    }
}

void DocumentHighlighter::work()
{
    if (!m_document || m_next < 0)
        return;
    QElapsedTimer elapsed;
    elapsed.start();
    if (!m_guessed)
        guessVisible();
    QTextBlock block = m_document->findBlockByNumber(m_next);
    while (block.isValid()) {
        const bool sameEnd = highlightBlock(block, stateBefore(block), false);
        const int number = block.blockNumber();
        block = block.next();
        if (sameEnd && number >= m_mustReach)
            break;
        if (block.isValid() && elapsed.elapsed() >= sliceMs) {
            m_next = block.blockNumber();
            m_timer.start(0);
            return;
        }
    }
    m_next = -1;
    m_mustReach = -1;
    emit idle();
}

TokenStyle DocumentHighlighter::styleAt(const QTextBlock &block, int unit)
{
    const auto *data = static_cast<const BlockData *>(block.userData());
    if (!data)
        return TokenStyle::Text;
    for (const TokenRun &run : data->runs) {
        if (run.begin <= unit && unit < run.begin + run.length)
            return run.style;
    }
    return TokenStyle::Text;
}

} // namespace klineage::ui
