// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/editor/diagnostics.h"
#include "ui/highlight/codepalette.h"

#include <QPlainTextEdit>

namespace klineage::ui {

class DocumentHighlighter;

/// A code editor: line numbers, the current line, bracket pairs, marks for diagnostics. Tab indents by four columns, Return keeps the
/// indentation. Documents and their highlighters belong to the caller.
class CodeEdit : public QPlainTextEdit
{
    Q_OBJECT

public:
    explicit CodeEdit(QWidget *parent = nullptr);

    void setSource(QTextDocument *document, DocumentHighlighter *highlighter);
    /// Wavy underlines and gutter marks.
    void setDiagnostics(std::vector<Diagnostic> diagnostics);
    [[nodiscard]] const std::vector<Diagnostic> &diagnostics() const { return m_diagnostics; }

    /// Places of the text that a search found, of that many characters each; marked until there are others.
    void setMatches(std::vector<int> positions, int length);
    void goTo(int position, int length = 0); ///< and selects so much, in view
    [[nodiscard]] const std::vector<int> &matches() const { return m_matches; }

    [[nodiscard]] int gutterWidth() const;
    void paintGutter(QPaintEvent *event);
    [[nodiscard]] QString diagnosticsOfLine(int line) const; ///< 1-based; one a line

protected:
    bool event(QEvent *event) override;
    void resizeEvent(QResizeEvent *event) override;
    void keyPressEvent(QKeyEvent *event) override;

private:
    void applyStyle();
    void updateMarks();
    void updateGutter(const QRect &rect, int dy);
    void tellVisible();
    void indentSelection(bool more);
    void breakLine();
    void addDiagnosticMarks(QList<QTextEdit::ExtraSelection> &marks) const;
    void addBracketMarks(QList<QTextEdit::ExtraSelection> &marks) const;
    void addMatchMarks(QList<QTextEdit::ExtraSelection> &marks) const;

    class Gutter;
    Gutter *m_gutter;
    QTextDocument *m_ownDocument; ///< shown while there is no other
    DocumentHighlighter *m_highlighter = nullptr;
    CodePalette m_palette;
    std::vector<Diagnostic> m_diagnostics;
    std::vector<int> m_matches;
    int m_matchLength = 0;
};

} // namespace klineage::ui
