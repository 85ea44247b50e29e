// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/profile/why/launchpage.h"

#include "ui/profile/why/launchmodel.h"
#include "ui/style/plainwidgets.h"

#include <QEvent>
#include <QHeaderView>
#include <QLabel>
#include <QTableView>
#include <QVBoxLayout>

#include <algorithm>

namespace klineage::ui {

namespace {

constexpr int limitMargin = 10;
constexpr int leastForSentences = 320;

QString limitOf(const QString &side, const std::vector<gate::LaunchNumbers> &launches)
{
    QStringList sentences;
    for (const gate::LaunchNumbers &one : launches) {
        const QString sentence = QString::fromStdString(one.limitText);
        const QString kernel = QString::fromStdString(one.kernel);
        sentences << (launches.size() > 1 ? LaunchPage::tr("%1, %2: %3").arg(side, kernel, sentence)
                                          : LaunchPage::tr("%1: %2").arg(side, sentence));
    }
    return sentences.join(QLatin1Char('\n'));
}

} // namespace

LaunchPage::LaunchPage(QWidget *parent)
    : QWidget(parent)
    , m_model(new LaunchModel(this))
    , m_table(makePlainTable(m_model, tr("Launch plans of both sides, in numbers")))
    , m_limits(new QLabel)
{
    m_limits->setWordWrap(true);
    m_limits->setTextFormat(Qt::PlainText);
    m_limits->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_limits->setContentsMargins(limitMargin, 4, limitMargin, 6);
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    layout->addWidget(m_table, 1);
    layout->addWidget(m_limits);
    setFocusProxy(m_table);
    // A scroll bar that comes or goes changes it too.
    m_table->viewport()->installEventFilter(this);
    installEventFilter(this);
}

void LaunchPage::setSides(const std::vector<gate::LaunchNumbers> &left, const QString &leftName,
                          const std::vector<gate::LaunchNumbers> &right, const QString &rightName)
{
    m_model->setSides(left, leftName, right, rightName);
    QStringList limits;
    for (const QString &sentence : {limitOf(leftName, left), limitOf(rightName, right)}) {
        if (!sentence.isEmpty())
            limits << sentence;
    }
    if (left.empty() && right.empty())
        limits << tr("The trials kept no numbers of their launches.");
    m_limits->setText(limits.join(QLatin1Char('\n')));
    setToolTip(m_limits->text() + QLatin1Char('\n')
               + tr("By the limits of the %1.").arg(QLatin1String(gate::smLimitsSource)));
    fitColumns();
}

QString LaunchPage::limits() const
{
    return m_limits->text();
}

bool LaunchPage::eventFilter(QObject *watched, QEvent *event)
{
    if (event->type() == QEvent::Resize && watched == this)
        m_limits->setVisible(height() >= leastForSentences); // the table names the limits too
    else if (event->type() == QEvent::Resize)
        fitColumns();
    else if (event->type() == QEvent::FontChange || event->type() == QEvent::StyleChange)
        QMetaObject::invokeMethod(this, &LaunchPage::fitColumns, Qt::QueuedConnection); // with its header
    return QWidget::eventFilter(watched, event);
}

/// Numbers are never cut off: the figures' names are elided first.
void LaunchPage::fitColumns()
{
    QHeaderView *header = m_table->horizontalHeader();
    const QAbstractItemView *view = m_table; // where the hint is public
    header->setSectionResizeMode(QHeaderView::Fixed);
    int rest = m_table->viewport()->width();
    for (const int column : {LaunchModel::LeftColumn, LaunchModel::RightColumn, LaunchModel::MarkColumn}) {
        const int width = std::max(view->sizeHintForColumn(column), header->sectionSizeHint(column));
        m_table->setColumnWidth(column, width);
        rest -= width;
    }
    m_table->setColumnWidth(LaunchModel::FigureColumn, std::max(rest, header->minimumSectionSize()));
}

} // namespace klineage::ui
