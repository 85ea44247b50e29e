// SPDX-License-Identifier: GPL-3.0-or-later
// The widgets of EditorPanel.
#include "ui/editor/codeedit.h"
#include "ui/editor/editorpanel.h"
#include "ui/editor/verdictstrip.h"
#include "ui/highlight/findbar.h"
#include "ui/models/selection.h"
#include "ui/models/workspacemodel.h"
#include "ui/style/keyedcommand.h"
#include "ui/style/plainwidgets.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QStackedWidget>
#include <QTabBar>
#include <QToolButton>
#include <QVBoxLayout>

namespace klineage::ui {

void EditorPanel::layOut()
{
    setBackgroundRole(QPalette::Base);
    setAutoFillBackground(true);
    m_tabs->setDrawBase(false);
    m_tabs->setExpanding(false);
    m_tabs->setMovable(true);
    m_tabs->setElideMode(Qt::ElideMiddle);
    m_tabs->setAccessibleName(tr("Drafts"));
    setKeyedToolTip(m_gate, tr("Compile, check and time this draft against the row it was begun from"),
                    m_gateAction);
    setKeyedToolTip(m_verdict->again(),
                    tr("Gate the same text again, with up to 30 s of timing instead of 10"), m_gateAction);

    m_empty->setAlignment(Qt::AlignCenter);
    m_empty->setWordWrap(true);
    m_empty->setForegroundRole(QPalette::PlaceholderText);
    m_empty->setText(
        tr("Nothing is being edited.\nChoose a state in the lineage and begin a draft from it. The gate then "
           "judges the draft, and its trial becomes a branch of the lineage."));
    auto *emptyPage = new QWidget(this);
    auto *emptyLayout = new QVBoxLayout(emptyPage);
    emptyLayout->setContentsMargins(40, 20, 40, 20);
    emptyLayout->addStretch(1);
    emptyLayout->addWidget(m_empty);
    emptyLayout->addSpacing(12);
    emptyLayout->addWidget(m_emptyButton, 0, Qt::AlignHCenter);
    emptyLayout->addStretch(2);

    m_checkLine->setContentsMargins(10, 4, 10, 4);
    m_checkLine->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_checkLine->setObjectName(QStringLiteral("planCheck"));

    m_elsewhere->setObjectName(QStringLiteral("draftElsewhere"));
    m_elsewhere->setBackgroundRole(QPalette::AlternateBase);
    m_elsewhere->setAutoFillBackground(true);
    m_elsewhere->hide();
    m_elsewhereShow->setAutoRaise(true);
    m_elsewhereShow->setFocusPolicy(Qt::StrongFocus);
    auto *elsewhere = new QHBoxLayout(m_elsewhere);
    elsewhere->setContentsMargins(10, 2, 6, 2);
    elsewhere->addWidget(m_elsewhereText, 1);
    elsewhere->addWidget(m_elsewhereShow);

    auto *bottom = new QHBoxLayout;
    bottom->setContentsMargins(0, 4, 8, 4);
    bottom->addWidget(m_checkLine, 1);
    bottom->addWidget(m_openButton);
    bottom->addWidget(m_gate);
    auto *editPage = new QWidget(this);
    auto *editLayout = new QVBoxLayout(editPage);
    editLayout->setContentsMargins(0, 0, 0, 0);
    editLayout->setSpacing(0);
    editLayout->addWidget(m_elsewhere);
    editLayout->addWidget(m_find);
    editLayout->addWidget(m_edit, 1);
    editLayout->addWidget(m_verdict);
    editLayout->addLayout(bottom);

    m_pages->addWidget(emptyPage);
    m_pages->addWidget(editPage);
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    layout->addWidget(m_tabs);
    layout->addWidget(m_pages, 1);
}

bool EditorPanel::isElsewhere(const Draft &draft) const
{
    return !m_selection->lineageKey().isEmpty() && draft.lineageKey != m_selection->lineageKey();
}

/// Library, lineage, diff and card are then not about what is edited.
void EditorPanel::markElsewhere()
{
    for (int i = 0; i < draftCount(); ++i)
        updateTabText(i);
    const QString row = parentRow();
    const QString lineage = parentLineage();
    const QString shown = m_selection->lineageKey();
    const bool elsewhere = !shown.isEmpty() && !lineage.isEmpty() && lineage != shown;
    m_elsewhere->setVisible(elsewhere);
    m_edit->setAccessibleName(
        elsewhere ? tr("Draft from %1 of %2, which is not the lineage that is shown").arg(row, lineage)
                  : tr("Draft from %1").arg(row));
    if (!elsewhere)
        return;
    m_elsewhereText->setWhole(
        tr("↗ This draft is of %1; what is shown beside it is of %2.").arg(lineage, shown));
    m_elsewhereShow->setText(tr("Show %1").arg(lineage));
    m_elsewhereShow->setToolTip(tr("Shows %1 of %2, from which the draft was begun").arg(row, lineage));
    m_elsewhereShow->setEnabled(m_workspace->lineage(lineage));
}

void EditorPanel::showDraftsRow()
{
    const QString row = parentRow();
    const QString lineage = parentLineage();
    m_selection->setLineage(lineage, row);
    m_edit->setFocus();
}

void EditorPanel::updateCommands()
{
    const QString row = m_selection->row();
    const bool canOpen = !row.isEmpty() && m_workspace->lineage(m_selection->lineageKey());
    const QString text = !canOpen                                  ? tr("Begin a draft")
                         : row.startsWith(QLatin1String("trial:")) ? tr("Begin a draft from this trial")
                                                                   : tr("Begin a draft from %1").arg(row);
    for (QPushButton *button : {m_openButton, m_emptyButton}) {
        button->setText(text);
        button->setEnabled(canOpen);
    }
    m_gate->setEnabled(draftCount() > 0);
}

} // namespace klineage::ui
