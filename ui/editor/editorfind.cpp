// SPDX-License-Identifier: GPL-3.0-or-later
// The commands of EditorPanel: the gate, finding, and going to a line.
#include "ui/editor/codeedit.h"
#include "ui/editor/editorpanel.h"
#include "ui/highlight/findbar.h"
#include "ui/style/keyedcommand.h"

#include <QInputDialog>
#include <QTextBlock>

#include <algorithm>
#include <utility>

namespace klineage::ui {

namespace {

constexpr std::size_t mostMatches = 2000; // each is a selection that the editor paints

} // namespace

void EditorPanel::makeCommands()
{
    m_gateAction = addKeyedCommand(this, QStringLiteral("editor.gate"), tr("Run the draft through the gate"),
                                   QKeySequence(Qt::CTRL | Qt::Key_Return));
    m_gateAction->setShortcuts({Qt::CTRL | Qt::Key_Return, Qt::CTRL | Qt::Key_Enter});
    connect(m_gateAction, &QAction::triggered, this, &EditorPanel::requestGate);
    QAction *line = addKeyedCommand(this, QStringLiteral("editor.goToLine"), tr("Go to line…"),
                                    QKeySequence(Qt::CTRL | Qt::Key_G));
    connect(line, &QAction::triggered, this, &EditorPanel::askForLine);

    connect(m_find, &FindBar::openWanted, this, &EditorPanel::openFind);
    connect(m_find, &FindBar::textChanged, this, [this] {
        const bool found = search();
        const std::vector<int> &matches = m_edit->matches();
        const auto next = std::lower_bound(matches.begin(), matches.end(), m_findFrom);
        if (found)
            m_edit->goTo(next == matches.end() ? matches.front() : *next,
                         static_cast<int>(m_find->text().size()));
        showMatchCount();
    });
    connect(m_find, &FindBar::nextWanted, this, [this] { goToMatch(1); });
    connect(m_find, &FindBar::previousWanted, this, [this] { goToMatch(-1); });
    connect(m_find, &FindBar::closed, this, [this] {
        m_edit->setMatches({}, 0);
        m_edit->setFocus();
    });
}

void EditorPanel::openFind()
{
    if (draftCount() == 0)
        return;
    const QString selected = m_edit->textCursor().selectedText();
    m_findFrom = m_edit->textCursor().selectionStart();
    m_find->open(selected.contains(QChar::ParagraphSeparator) ? QString() : selected);
}

/// The case of letters counts only when there is a capital among them, as in the diff.
bool EditorPanel::search()
{
    const QString wanted = m_find->text();
    const bool hasCapital =
        std::any_of(wanted.begin(), wanted.end(), [](QChar letter) { return letter.isUpper(); });
    const QString text = m_edit->toPlainText(); // a place in it is one of the document
    std::vector<int> found;
    m_hasMoreMatches = false;
    for (qsizetype at = wanted.isEmpty() ? -1 : 0; at >= 0;) {
        at = text.indexOf(wanted, at, hasCapital ? Qt::CaseSensitive : Qt::CaseInsensitive);
        if (at < 0)
            break;
        if (found.size() == mostMatches) {
            m_hasMoreMatches = true;
            break;
        }
        found.push_back(static_cast<int>(at));
        at += wanted.size();
    }
    m_edit->setMatches(std::move(found), static_cast<int>(wanted.size()));
    return !m_edit->matches().empty();
}

/// From the cursor on, and round past the ends.
void EditorPanel::goToMatch(int step)
{
    if (m_find->text().isEmpty()) {
        openFind();
        return;
    }
    if (draftCount() == 0 || !search()) {
        showMatchCount();
        return;
    }
    const std::vector<int> &matches = m_edit->matches();
    const QTextCursor cursor = m_edit->textCursor();
    auto at = matches.begin();
    if (step > 0) {
        at = std::lower_bound(matches.begin(), matches.end(), cursor.selectionEnd());
        if (at == matches.end())
            at = matches.begin();
    } else {
        at = std::lower_bound(matches.begin(), matches.end(), cursor.selectionStart());
        at = std::prev(at == matches.begin() ? matches.end() : at);
    }
    m_findFrom = *at;
    m_edit->goTo(*at, static_cast<int>(m_find->text().size()));
    showMatchCount();
    if (m_find->isHidden())
        m_edit->setMatches({}, 0);
}

void EditorPanel::showMatchCount()
{
    const std::vector<int> &matches = m_edit->matches();
    const auto at = std::lower_bound(matches.begin(), matches.end(), m_edit->textCursor().selectionStart());
    const bool isAtOne = at != matches.end() && *at == m_edit->textCursor().selectionStart();
    m_find->setCount(isAtOne ? static_cast<int>(at - matches.begin()) : -1, static_cast<int>(matches.size()),
                     m_hasMoreMatches);
}

void EditorPanel::askForLine()
{
    if (draftCount() == 0)
        return;
    const int last = m_edit->blockCount();
    bool isWanted = false;
    const int line = QInputDialog::getInt(this, tr("Go to line"), tr("&Line (1 to %1)").arg(last),
                                          m_edit->textCursor().blockNumber() + 1, 1, last, 1, &isWanted);
    if (!isWanted)
        return;
    m_edit->goTo(m_edit->document()->findBlockByNumber(line - 1).position());
    m_edit->setFocus();
}

} // namespace klineage::ui
