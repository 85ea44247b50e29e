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

    auto *bottom = new QHBoxLayout;
    bottom->setContentsMargins(0, 4, 8, 4);
    bottom->addWidget(m_checkLine, 1);
    bottom->addWidget(m_openButton);
    bottom->addWidget(m_gate);
    auto *editPage = new QWidget(this);
    auto *editLayout = new QVBoxLayout(editPage);
    editLayout->setContentsMargins(0, 0, 0, 0);
    editLayout->setSpacing(0);
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
