// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/editor/codeedit.h"

#include "ui/editor/brackets.h"
#include "ui/highlight/documenthighlighter.h"
#include "ui/highlight/textlines.h"
#include "ui/style/fonts.h"
#include "ui/style/theme.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QPainter>
#include <QPlainTextDocumentLayout>
#include <QTextBlock>
#include <QToolTip>

#include <algorithm>
#include <utility>

namespace klineage::ui {

namespace {

constexpr int indentColumns = 4;

} // namespace

class CodeEdit::Gutter : public QWidget
{
public:
    explicit Gutter(CodeEdit *edit)
        : QWidget(edit)
        , m_edit(edit)
    {}

protected:
    void paintEvent(QPaintEvent *event) override { m_edit->paintGutter(event); }
    bool event(QEvent *event) override
    {
        if (event->type() == QEvent::ToolTip) {
            const auto *help = static_cast<QHelpEvent *>(event);
            const int line = m_edit->cursorForPosition(QPoint(0, help->y())).blockNumber() + 1;
            QToolTip::showText(help->globalPos(), m_edit->diagnosticsOfLine(line), this);
            return true;
        }
        return QWidget::event(event);
    }

private:
    CodeEdit *m_edit;
};

CodeEdit::CodeEdit(QWidget *parent)
    : QPlainTextEdit(parent)
    , m_gutter(new Gutter(this))
    , m_ownDocument(new QTextDocument(this))
{
    m_ownDocument->setDocumentLayout(new QPlainTextDocumentLayout(m_ownDocument));
    setDocument(m_ownDocument); // the one that the base class made goes away with the first change
    setFrameShape(QFrame::NoFrame);
    setLineWrapMode(QPlainTextEdit::NoWrap);
    setAccessibleName(tr("Candidate"));
    connect(this, &QPlainTextEdit::blockCountChanged, this,
            [this] { setViewportMargins(gutterWidth(), 0, 0, 0); });
    connect(this, &QPlainTextEdit::updateRequest, this, &CodeEdit::updateGutter);
    connect(this, &QPlainTextEdit::cursorPositionChanged, this, &CodeEdit::updateMarks);
    applyStyle();
}

void CodeEdit::setSource(QTextDocument *document, DocumentHighlighter *highlighter)
{
    m_highlighter = highlighter;
    m_matches.clear();
    setDocument(document ? document : m_ownDocument);
    applyStyle();
    setDiagnostics({});
}

void CodeEdit::applyStyle()
{
    m_palette = CodePalette::from(Theme::current());
    const QFont font = codeFont();
    setFont(font);
    document()->setDefaultFont(font);
    const double columnWidth = QFontMetricsF(font).horizontalAdvance(u'0');
    setTabStopDistance(TextLines::tabColumns * columnWidth);
    setViewportMargins(gutterWidth(), 0, 0, 0);
    if (m_highlighter)
        m_highlighter->setPalette(m_palette);
    updateMarks();
    m_gutter->update();
}

void CodeEdit::setDiagnostics(std::vector<Diagnostic> diagnostics)
{
    m_diagnostics = std::move(diagnostics);
    updateMarks();
    m_gutter->update();
}

QString CodeEdit::diagnosticsOfLine(int line) const
{
    QStringList messages;
    for (const Diagnostic &diagnostic : m_diagnostics) {
        if (diagnostic.line == line)
            messages << diagnostic.message;
    }
    return messages.join(u'\n');
}

void CodeEdit::addDiagnosticMarks(QList<QTextEdit::ExtraSelection> &marks) const
{
    const Theme &theme = Theme::current();
    for (const Diagnostic &diagnostic : m_diagnostics) {
        const QTextBlock block = document()->findBlockByNumber(diagnostic.line - 1);
        if (diagnostic.line <= 0 || !block.isValid())
            continue;
        const QString text = block.text();
        int begin =
            diagnostic.column > 0 ? std::min(diagnostic.column - 1, static_cast<int>(text.size())) : 0;
        while (diagnostic.column == 0 && begin < text.size() && text.at(begin).isSpace())
            ++begin;
        int end = diagnostic.column > 0 ? begin : static_cast<int>(text.size());
        while (diagnostic.column > 0 && end < text.size()
               && (text.at(end).isLetterOrNumber() || text.at(end) == u'_'))
            ++end;
        end = std::min(std::max(end, begin + 1), static_cast<int>(text.size()));
        if (end <= begin)
            begin = std::max(0, end - 1);
        QTextEdit::ExtraSelection mark;
        mark.cursor = QTextCursor(block);
        mark.cursor.setPosition(block.position() + begin);
        mark.cursor.setPosition(block.position() + end, QTextCursor::KeepAnchor);
        mark.format.setUnderlineStyle(QTextCharFormat::WaveUnderline);
        mark.format.setUnderlineColor(diagnostic.severity == Diagnostic::Severity::Error ? theme.bad
                                                                                         : theme.warn);
        marks << mark;
    }
}

void CodeEdit::addBracketMarks(QList<QTextEdit::ExtraSelection> &marks) const
{
    const BracketPair pair = bracketPairAt(*document(), textCursor().position());
    if (pair.first < 0 || pair.second < 0)
        return;
    for (const int position : {pair.first, pair.second}) {
        QTextEdit::ExtraSelection mark;
        mark.cursor = textCursor();
        mark.cursor.setPosition(position);
        mark.cursor.movePosition(QTextCursor::NextCharacter, QTextCursor::KeepAnchor);
        mark.format.setBackground(pair.mismatched ? m_palette.removedWord : m_palette.bracket);
        marks << mark;
    }
}

void CodeEdit::addMatchMarks(QList<QTextEdit::ExtraSelection> &marks) const
{
    for (const int position : m_matches) {
        if (position + m_matchLength >= document()->characterCount())
            break; // of the text before this edit
        QTextEdit::ExtraSelection mark;
        mark.cursor = textCursor();
        mark.cursor.setPosition(position);
        mark.cursor.setPosition(position + m_matchLength, QTextCursor::KeepAnchor);
        mark.format.setBackground(m_palette.match);
        if (mark.cursor.selectionStart()
            == textCursor().selectionStart()) { // the current one, selected as well
            mark.format.setUnderlineStyle(QTextCharFormat::SingleUnderline);
            mark.format.setUnderlineColor(m_palette.matchFrame);
        }
        marks << mark;
    }
}

void CodeEdit::setMatches(std::vector<int> positions, int length)
{
    m_matches = std::move(positions);
    m_matchLength = length;
    updateMarks();
}

void CodeEdit::goTo(int position, int length)
{
    QTextCursor cursor = textCursor();
    cursor.setPosition(position + length);
    cursor.setPosition(position, QTextCursor::KeepAnchor);
    setTextCursor(cursor);
    if (!viewport()->rect().adjusted(0, 0, 0, -fontMetrics().height()).contains(cursorRect().topLeft()))
        centerCursor();
}

void CodeEdit::updateMarks()
{
    QList<QTextEdit::ExtraSelection> marks;
    QTextEdit::ExtraSelection line;
    line.cursor = textCursor();
    line.cursor.clearSelection();
    line.format.setBackground(m_palette.currentLine);
    line.format.setProperty(QTextFormat::FullWidthSelection, true);
    marks << line;
    addMatchMarks(marks);
    addBracketMarks(marks);
    addDiagnosticMarks(marks);
    setExtraSelections(marks);
}

int CodeEdit::gutterWidth() const
{
    const int digits = std::max(3, static_cast<int>(QString::number(blockCount()).size()));
    return 8 + fontMetrics().horizontalAdvance(u'0') * digits + 14;
}

void CodeEdit::updateGutter(const QRect &rect, int dy)
{
    if (dy != 0)
        m_gutter->scroll(0, dy);
    else
        m_gutter->update(0, rect.y(), m_gutter->width(), rect.height());
    tellVisible();
}

void CodeEdit::tellVisible()
{
    if (!m_highlighter)
        return;
    const int first = firstVisibleBlock().blockNumber();
    const int rows = viewport()->height() / std::max(1, fontMetrics().height()) + 1;
    m_highlighter->setVisible(first, first + rows);
}

void CodeEdit::paintGutter(QPaintEvent *event)
{
    const Theme &theme = Theme::current();
    QPainter painter(m_gutter);
    painter.fillRect(event->rect(), m_palette.background);
    painter.setFont(font());
    const int current = textCursor().blockNumber();
    QTextBlock block = firstVisibleBlock();
    double top = blockBoundingGeometry(block).translated(contentOffset()).top();
    while (block.isValid() && top <= event->rect().bottom()) {
        const double height = blockBoundingRect(block).height();
        if (block.isVisible() && top + height >= event->rect().top()) {
            const QRectF row(0, top, m_gutter->width() - 14, height);
            const int line = block.blockNumber() + 1;
            const auto marked = std::find_if(m_diagnostics.begin(), m_diagnostics.end(),
                                             [=](const Diagnostic &d) { return d.line == line; });
            QColor color = block.blockNumber() == current ? theme.text : theme.dim;
            if (marked != m_diagnostics.end()) {
                color = marked->severity == Diagnostic::Severity::Error ? theme.bad : theme.warn;
                painter.setPen(color);
                painter.drawText(QRectF(row.right() + 1, top, 12, height), Qt::AlignCenter,
                                 marked->severity == Diagnostic::Severity::Error ? QStringLiteral("✕")
                                                                                 : QStringLiteral("!"));
            }
            painter.setPen(color);
            painter.drawText(row, Qt::AlignRight | Qt::AlignVCenter, QString::number(line));
        }
        top += height;
        block = block.next();
    }
}

bool CodeEdit::event(QEvent *event)
{
    if (event->type() == QEvent::PaletteChange || event->type() == QEvent::ApplicationFontChange) {
        const bool handled = QPlainTextEdit::event(event);
        if (codeFont() != font() || CodePalette::from(Theme::current()).background != m_palette.background)
            applyStyle();
        return handled;
    }
    return QPlainTextEdit::event(event);
}

void CodeEdit::resizeEvent(QResizeEvent *event)
{
    QPlainTextEdit::resizeEvent(event);
    const QRect area = contentsRect();
    m_gutter->setGeometry(area.left(), area.top(), gutterWidth(), area.height());
    tellVisible();
}

void CodeEdit::keyPressEvent(QKeyEvent *event)
{
    const auto modifiers = event->modifiers() & ~Qt::KeypadModifier;
    const bool enter = event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter;
    if (isReadOnly()) {
        QPlainTextEdit::keyPressEvent(event);
        return;
    }
    if (enter && modifiers == Qt::NoModifier) {
        breakLine();
        return;
    }
    if (event->key() == Qt::Key_Tab && modifiers == Qt::NoModifier) {
        if (textCursor().hasSelection()) {
            indentSelection(true);
        } else {
            const int column = textCursor().positionInBlock();
            insertPlainText(QString(indentColumns - column % indentColumns, u' '));
        }
        return;
    }
    if (event->key() == Qt::Key_Backtab) {
        indentSelection(false);
        return;
    }
    QPlainTextEdit::keyPressEvent(event);
}

void CodeEdit::breakLine()
{
    const QString before = textCursor().block().text().left(textCursor().positionInBlock());
    QString indent;
    for (const QChar c : before) {
        if (c != u' ' && c != u'\t')
            break;
        indent += c;
    }
    if (before.trimmed().endsWith(u'{'))
        indent += QString(indentColumns, u' ');
    QTextCursor cursor = textCursor();
    cursor.beginEditBlock();
    cursor.insertBlock();
    cursor.insertText(indent);
    cursor.endEditBlock();
    setTextCursor(cursor);
    ensureCursorVisible();
}

void CodeEdit::indentSelection(bool more)
{
    QTextCursor cursor = textCursor();
    const int end = cursor.selectionEnd();
    QTextBlock block = document()->findBlock(cursor.selectionStart());
    QTextBlock last = document()->findBlock(end);
    if (last.position() == end && last != block)
        last = last.previous(); // the selection ends before this line
    cursor.beginEditBlock();
    for (;; block = block.next()) {
        QTextCursor edit(block);
        if (more) {
            if (!block.text().isEmpty())
                edit.insertText(QString(indentColumns, u' '));
        } else {
            for (int i = 0; i < indentColumns && block.text().startsWith(u' '); ++i)
                edit.deleteChar();
        }
        if (block == last)
            break;
    }
    cursor.endEditBlock();
}

} // namespace klineage::ui
