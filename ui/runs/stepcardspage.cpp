// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/runs/stepcardspage.h"

#include "ui/models/workspacemodel.h"
#include "ui/style/fonts.h"
#include "ui/style/plainwidgets.h"
#include "ui/style/theme.h"

#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSplitter>
#include <QStackedWidget>
#include <QTableView>
#include <QVBoxLayout>

#include <algorithm>

namespace klineage::ui {

namespace {

using Shown = StepCard::Shown;

QString summaryOfCards(const std::vector<StepCard> &cards)
{
    const auto count = [&](Shown shown) {
        return static_cast<int>(std::count_if(cards.begin(), cards.end(),
                                              [shown](const StepCard &card) { return card.shown == shown; }));
    };
    QStringList parts;
    const auto add = [&](Shown shown, const QString &text) {
        if (count(shown) > 0)
            parts << text.arg(count(shown));
    };
    add(Shown::Text, StepCardsPage::tr("%1 with their text"));
    add(Shown::Line, StepCardsPage::tr("%1 as a line of the index"));
    add(Shown::Named, StepCardsPage::tr("%1 by name"));
    const QString asked = parts.isEmpty() ? StepCardsPage::tr("none") : parts.join(QStringLiteral(", "));
    parts = {StepCardsPage::tr("In this question: %1").arg(asked)};
    add(Shown::Nothing, StepCardsPage::tr("%1 taken for the run and not in it"));
    add(Shown::Missed, StepCardsPage::tr("%1 near misses"));
    return parts.join(QStringLiteral(" · "));
}

} // namespace

StepCardsModel::StepCardsModel(const WorkspaceModel *workspace, QObject *parent)
    : QAbstractTableModel(parent)
    , m_workspace(workspace)
{}

void StepCardsModel::setCards(std::vector<StepCard> cards)
{
    beginResetModel();
    m_cards = std::move(cards);
    endResetModel();
}

bool StepCardsModel::isInLibrary(int row) const
{
    return m_workspace && m_workspace->card(card(row).name);
}

int StepCardsModel::rowCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_cards.size());
}

int StepCardsModel::columnCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : ColumnCount;
}

/// The revision that the run took, and the one of now where that is another.
QString StepCardsModel::revisionText(const StepCard &card) const
{
    const skills::CardRecord *now = m_workspace ? m_workspace->card(card.name) : nullptr;
    if (card.revision == 0)
        return QStringLiteral("–");
    if (m_workspace && !now)
        return tr("%1, gone").arg(card.revision);
    return now && now->card.revision != card.revision
               ? tr("%1, now %2").arg(card.revision).arg(now->card.revision)
               : QString::number(card.revision);
}

QString StepCardsModel::text(const StepCard &card, int column) const
{
    switch (column) {
    case ShownColumn: {
        const StatusStyle style = shownStyle(card.shown);
        return QStringLiteral("%1 %2").arg(style.glyph, style.word);
    }
    case CardColumn:
        return card.name;
    case RevisionColumn:
        return revisionText(card);
    default:
        return card.why.join(QStringLiteral(" · "));
    }
}

QVariant StepCardsModel::data(const QModelIndex &index, int role) const
{
    if (!index.isValid() || !checkIndex(index, CheckIndexOption::ParentIsInvalid))
        return {};
    const StepCard &card = m_cards[static_cast<std::size_t>(index.row())];
    switch (role) {
    case Qt::DisplayRole:
        return text(card, index.column());
    case Qt::ToolTipRole:
        return index.column() == WhyColumn    ? card.why.join(QLatin1Char('\n'))
               : index.column() == CardColumn ? card.intent
                                              : text(card, index.column());
    case Qt::FontRole:
        return index.column() == CardColumn && card.isAbout ? QVariant(strongFont()) : QVariant();
    case Qt::ForegroundRole:
        return index.column() == ShownColumn ? QVariant(toneColor(shownStyle(card.shown).tone)) : QVariant();
    default:
        return {};
    }
}

QVariant StepCardsModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal)
        return {};
    if (role == Qt::TextAlignmentRole)
        return static_cast<int>(Qt::AlignVCenter | Qt::AlignLeft);
    if (role != Qt::DisplayRole)
        return {};
    switch (section) {
    case ShownColumn:
        return tr("In the question");
    case CardColumn:
        return tr("Card");
    case RevisionColumn:
        return tr("Revision");
    default:
        return tr("Why it came, or what blocked it");
    }
}

StepCardsPage::StepCardsPage(const WorkspaceModel *workspace, QWidget *parent)
    : QWidget(parent)
    , m_model(new StepCardsModel(workspace, this))
    , m_table(makePlainTable(m_model, tr("Cards of the step")))
    , m_detail(new QPlainTextEdit)
    , m_summary(new QLabel)
    , m_message(makeMessageLabel())
    , m_open(new QPushButton(tr("&Show the card")))
    , m_stack(new QStackedWidget)
{
    m_table->horizontalHeader()->setStretchLastSection(true);
    m_detail->setReadOnly(true);
    m_detail->setFont(codeFont());
    m_detail->setFrameShape(QFrame::NoFrame);
    m_detail->setAccessibleName(tr("The card as the run took it"));
    m_detail->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
    m_summary->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
    m_open->setToolTip(tr("The card as it is in the library now (Return in the list)"));
    m_open->setAutoDefault(false);
    auto *splitter = new QSplitter(Qt::Vertical);
    splitter->addWidget(m_table);
    splitter->addWidget(m_detail);
    splitter->setSizes({260, 240});
    splitter->setChildrenCollapsible(false);
    auto *head = new QHBoxLayout;
    head->setContentsMargins(10, 5, 10, 5);
    head->addWidget(m_summary, 1);
    head->addWidget(m_open);
    auto *page = new QWidget;
    auto *column = new QVBoxLayout(page);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    column->addLayout(head);
    column->addWidget(splitter, 1);
    m_stack->addWidget(page);
    m_stack->addWidget(m_message);
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(m_stack);
    setFocusProxy(m_table);
    connect(m_table->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
            &StepCardsPage::showDetail);
    connect(m_table, &QTableView::activated, this, &StepCardsPage::openCard);
    connect(m_open, &QPushButton::clicked, this, &StepCardsPage::openCard);
    setCards({});
}

void StepCardsPage::setCards(const StepCards &cards)
{
    const int row = m_table->currentIndex().row();
    const QString before = row >= 0 ? m_model->card(row).name : QString();
    m_model->setCards(cards.cards);
    m_message->setText(cards.problem);
    m_summary->setText(summaryOfCards(cards.cards));
    m_summary->setToolTip(m_summary->text());
    m_stack->setCurrentIndex(cards.cards.empty() ? 1 : 0);
    if (cards.cards.empty()) {
        showDetail();
        return;
    }
    // What the step is about, of several the one that was looked at before; else that one, where it is there.
    const auto found = std::find_if(cards.cards.begin(), cards.cards.end(),
                                    [&](const StepCard &card) { return card.name == before; });
    const auto about = std::find_if(cards.cards.begin(), cards.cards.end(),
                                    [](const StepCard &card) { return card.isAbout; });
    const bool keeps = found != cards.cards.end() && (found->isAbout || about == cards.cards.end());
    const auto chosen = keeps ? found : about != cards.cards.end() ? about : cards.cards.begin();
    m_table->selectRow(static_cast<int>(chosen - cards.cards.begin()));
    m_table->resizeColumnsToContents();
}

QString StepCardsPage::summary() const
{
    return m_summary->text();
}

void StepCardsPage::showDetail()
{
    const int row = m_table->currentIndex().row();
    m_open->setEnabled(row >= 0 && m_model->isInLibrary(row));
    if (row < 0) {
        m_detail->clear();
        return;
    }
    const StepCard &card = m_model->card(row);
    QStringList lines;
    lines << (card.shown == Shown::Missed ? tr("What blocked it:") : tr("Why it came:"));
    for (const QString &sentence : card.why)
        lines << QStringLiteral("  – ") + sentence;
    if (!card.text.isEmpty())
        lines << QString() << tr("As the run took it:") << QString() << card.text;
    m_detail->setPlainText(lines.join(QLatin1Char('\n')));
}

void StepCardsPage::openCard()
{
    const int row = m_table->currentIndex().row();
    if (row >= 0 && m_model->isInLibrary(row))
        emit cardRequested(m_model->card(row).name);
}

} // namespace klineage::ui
