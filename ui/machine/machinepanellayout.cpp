// SPDX-License-Identifier: GPL-3.0-or-later
// The widgets and commands of MachinePanel.
#include "ui/machine/machinepanel.h"

#include "ui/machine/codeside.h"
#include "ui/machine/codeview.h"
#include "ui/machine/mixmodel.h"
#include "ui/style/icons.h"
#include "ui/style/segmentedswitch.h"

#include <QAction>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QTableView>
#include <QToolButton>
#include <QVBoxLayout>

#include <algorithm>

namespace klineage::ui {

namespace {

constexpr int leastWidthOfBoth = 560;
constexpr int summaryMargin = 8;
constexpr int mostMixShare = 2; // of the panel's height: a half

} // namespace

QAction *MachinePanel::command(const QString &name, const QString &text, const QKeySequence &key,
                               const std::function<void()> &act)
{
    auto *action = new QAction(text, this);
    action->setObjectName(QStringLiteral("machine.") + name);
    action->setShortcut(key);
    action->setShortcutContext(Qt::WidgetWithChildrenShortcut);
    action->setToolTip(
        key.isEmpty() ? text : QStringLiteral("%1 (%2)").arg(text, key.toString(QKeySequence::NativeText)));
    connect(action, &QAction::triggered, this, act);
    addAction(action);
    return action;
}

void MachinePanel::makeCommands()
{
    QAction *previous = command(QStringLiteral("previousHottest"), tr("Previous hottest instruction"),
                                QKeySequence(Qt::SHIFT | Qt::Key_F4), [this] { goToHottest(-1); });
    QAction *next = command(QStringLiteral("nextHottest"), tr("Next hottest instruction"),
                            QKeySequence(Qt::Key_F4), [this] { goToHottest(1); });
    previous->setIcon(icon(QStringLiteral("previous")));
    next->setIcon(icon(QStringLiteral("next")));
    // From wherever one reads the source.
    previous->setShortcutContext(Qt::WindowShortcut);
    next->setShortcutContext(Qt::WindowShortcut);
    command(QStringLiteral("switchForm"), tr("SASS or PTX"), QKeySequence(Qt::ALT | Qt::Key_P),
            [this] { setForm(form() == CodeForm::Sass ? CodeForm::Ptx : CodeForm::Sass); });
    m_mixAction = command(QStringLiteral("mix"), tr("Instruction mix"), QKeySequence(Qt::ALT | Qt::Key_I),
                          [this] { makeRoom(); });
    m_mixAction->setIconText(tr("Mix"));
    m_mixAction->setCheckable(true);
    command(QStringLiteral("copy"), tr("Copy the selected instructions"), QKeySequence::Copy,
            [this] { copyRows(); });
    auto *bar = qobject_cast<QHBoxLayout *>(layout()->itemAt(0)->layout());
    for (QAction *action : {previous, next, m_mixAction}) {
        auto *button = new QToolButton(this);
        button->setDefaultAction(action);
        button->setAutoRaise(true);
        button->setFocusPolicy(Qt::TabFocus);
        bar->addWidget(button);
        m_buttons << button;
    }
}

void MachinePanel::layOut()
{
    m_forms->setAccessibleName(tr("Form of the machine code"));
    m_forms->setToolTips({tr("What the device executes"), tr("What the compiler makes it from")});
    m_places->setAccessibleName(tr("State whose machine code is shown"));
    m_places->setCurrentIndex(1);
    m_summary->setObjectName(QStringLiteral("codeSummary"));
    m_summary->setTextFormat(Qt::PlainText);
    m_summary->setForegroundRole(QPalette::PlaceholderText);
    m_summary->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
    m_summary->setContentsMargins(summaryMargin, 1, summaryMargin, 2);
    m_mixTable->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
    m_mixTable->horizontalHeader()->setStretchLastSection(false);
    m_mixTable->hide();

    auto *bar = new QHBoxLayout;
    bar->setContentsMargins(summaryMargin, 3, 4, 1);
    bar->setSpacing(6);
    bar->addWidget(m_forms);
    bar->addWidget(m_places);
    bar->addStretch(1);
    m_sideBorder->setFixedWidth(1);
    m_sideBorder->setAutoFillBackground(true);
    m_sideBorder->setBackgroundRole(QPalette::Mid);
    auto *sides = new QHBoxLayout;
    sides->setContentsMargins(0, 0, 0, 0);
    sides->setSpacing(0);
    sides->addWidget(m_sides[0], 1);
    sides->addWidget(m_sideBorder);
    sides->addWidget(m_sides[1], 1);
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    layout->addLayout(bar);
    layout->addWidget(m_summary);
    layout->addWidget(m_mixTable);
    layout->addLayout(sides, 1);
}

/// Two lists where both can be read, else the one that was chosen. The mix takes at most half of the height.
void MachinePanel::makeRoom()
{
    const bool hasBoth = m_wanted[0].has_value();
    const bool fitsBoth = hasBoth && width() >= leastWidthOfBoth;
    const int place = hasBoth ? m_places->currentIndex() : 1;
    m_places->setVisible(hasBoth && !fitsBoth);
    m_sides[0]->setVisible(fitsBoth || place == 0);
    m_sides[1]->setVisible(fitsBoth || place == 1);
    m_sideBorder->setVisible(fitsBoth);
    const int room = width() - 2 * summaryMargin;
    m_summary->setText(m_summary->fontMetrics().elidedText(m_summaryText, Qt::ElideRight, room));
    m_summary->setToolTip(m_summaryText);
    m_summary->setVisible(!m_summaryText.isEmpty());
    const bool showMix = m_mixAction && m_mixAction->isChecked() && m_mix->rowCount() > 0;
    const int wanted = m_mixTable->horizontalHeader()->sizeHint().height()
                       + m_mix->rowCount() * m_mixTable->verticalHeader()->defaultSectionSize();
    m_mixTable->setFixedHeight(std::max(1, std::min(wanted, height() / mostMixShare)));
    m_mixTable->setVisible(showMix);
}

QSize MachinePanel::minimumSizeHint() const
{
    int width = m_forms->sizeHint().width() + m_places->sizeHint().width() + 4 * summaryMargin;
    for (const QToolButton *button : m_buttons)
        width += button->sizeHint().width();
    return {width, 80};
}

} // namespace klineage::ui
