// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/highlight/codepalette.h"
#include "ui/highlight/linehighlighter.h"

#include <QObject>
#include <QPointer>
#include <QTextBlock>
#include <QTimer>

class QTextDocument;

namespace klineage::ui {

/// Highlights a text document that is being edited, on the GUI thread but never for longer than a few milliseconds at a time:
/// what was changed first, what is visible before the rest, and only as far down as a change reaches.
class DocumentHighlighter : public QObject
{
    Q_OBJECT

public:
    DocumentHighlighter(QTextDocument *document, Language language, QObject *parent = nullptr);

    void setPalette(const CodePalette &palette); ///< highlights everything again
    /// Which blocks are on the screen.
    void setVisible(int firstBlock, int lastBlock);
    [[nodiscard]] bool isBusy() const { return m_next >= 0; }

    /// The style at a unit of a block; plain text where nothing is known yet.
    [[nodiscard]] static TokenStyle styleAt(const QTextBlock &block, int unit);

    static constexpr int sliceMs = 4;

signals:
    void idle();

private:
    struct BlockData;

    void onContentsChange(int position, int removed, int added);
    void work();
    /// True when the block leaves off as it did before.
    bool highlightBlock(QTextBlock &block, const LineHighlighter::State &before, bool guess);
    void guessVisible();
    [[nodiscard]] LineHighlighter::State stateBefore(const QTextBlock &block) const;

    QPointer<QTextDocument> m_document;
    LineHighlighter m_highlighter;
    CodePalette m_palette;
    QTimer m_timer;
    int m_next = -1;      ///< block to highlight next; -1: nothing to do
    int m_mustReach = -1; ///< last block that was changed
    int m_firstVisible = 0;
    int m_lastVisible = -1;
    bool m_guessed = false;
};

} // namespace klineage::ui
