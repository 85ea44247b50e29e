// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/centre.h"

#include "ui/begin/guidebar.h"
#include "ui/begin/welcomepage.h"
#include "ui/shell/breadcrumb.h"
#include "ui/shell/latepanel.h"
#include "ui/style/segmentedswitch.h"
#include "ui/style/theme.h"

#include <QApplication>
#include <QHBoxLayout>
#include <QPainter>
#include <QStackedWidget>
#include <QVBoxLayout>

#include <algorithm>
#include <utility>

namespace klineage::ui {

namespace {

constexpr int barHeight = 31;

} // namespace

Centre::Centre(WorkspaceModel *workspace, Selection *selection, const std::vector<Page> &pages,
               QWidget *parent)
    : QWidget(parent)
    , m_breadcrumb(new Breadcrumb(workspace, selection))
    , m_pages(new QStackedWidget)
    , m_whole(new QStackedWidget)
    , m_guide(new GuideBar)
{
    QStringList titles;
    for (const Page &page : pages) {
        m_ids << page.id;
        titles << page.title;
        if (page.followsLineage)
            m_lineageIds << page.id;
        m_late.push_back(new LatePanel);
        m_pages->addWidget(m_late.back());
    }
    m_switch = new SegmentedSwitch(titles, SegmentedSwitch::Size::Small);
    m_switch->setAccessibleName(tr("Page in the middle"));
    m_switch->setVisible(pages.size() > 1);
    connect(m_switch, &SegmentedSwitch::currentChanged, this,
            [this](int index) { showPage(m_ids.value(index)); });

    auto *bar = new QWidget;
    bar->setFixedHeight(barHeight);
    auto *row = new QHBoxLayout(bar);
    row->setContentsMargins(0, 0, 6, 1);
    QSizePolicy kept = m_breadcrumb->sizePolicy();
    kept.setRetainSizeWhenHidden(true);
    m_breadcrumb->setSizePolicy(kept);
    row->addWidget(m_breadcrumb, 1);
    row->addWidget(m_switch);
    auto *whole = new QWidget;
    auto *column = new QVBoxLayout(whole);
    column->setContentsMargins(1, 1, 1, 1);
    column->setSpacing(0);
    column->addWidget(bar);
    column->addWidget(m_guide);
    column->addWidget(m_pages, 1);
    m_guide->hide();

    m_whole->addWidget(whole);
    m_late.push_back(new LatePanel);
    m_whole->addWidget(m_late.back());
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(m_whole);
    connect(qApp, &QApplication::focusChanged, this, [this](const QWidget *, const QWidget *now) {
        const bool within = now && isAncestorOf(now);
        if (std::exchange(m_hasFocusWithin, within) != within)
            update();
    });
}

void Centre::setPage(const QString &id, QWidget *widget)
{
    widget->setAutoFillBackground(true);
    widget->setBackgroundRole(QPalette::Base);
    LatePanel *late = m_late[static_cast<std::size_t>(m_ids.indexOf(id))];
    late->setPanel(widget);
    late->setFocusProxy(widget); // a stack gives its page the focus
}

WelcomePage *Centre::welcome()
{
    if (!m_welcome) {
        m_welcome = new WelcomePage;
        m_late.back()->setPanel(m_welcome);
        m_late.back()->setFocusProxy(m_welcome);
    }
    return m_welcome;
}

void Centre::showPage(const QString &id)
{
    const int index = static_cast<int>(m_ids.indexOf(id));
    if (index < 0 || index == m_pages->currentIndex())
        return;
    m_late[static_cast<std::size_t>(index)]->reveal();
    m_pages->setCurrentIndex(index);
    m_switch->setCurrentIndex(index);
    m_breadcrumb->setVisible(m_lineageIds.contains(id));
}

QString Centre::page() const
{
    return m_ids.value(m_pages->currentIndex());
}

QWidget *Centre::pageWidget() const
{
    return static_cast<const LatePanel *>(m_pages->currentWidget())->panel();
}

void Centre::revealFront()
{
    static_cast<LatePanel *>(isWelcoming() ? m_whole->currentWidget() : m_pages->currentWidget())->reveal();
}

bool Centre::revealNext()
{
    const auto next = std::find_if(m_late.begin(), m_late.end(), [](const LatePanel *page) {
        return page->panel() && !page->isRevealed();
    });
    if (next != m_late.end())
        (*next)->reveal();
    return next != m_late.end();
}

void Centre::showWelcome(bool welcoming)
{
    if (welcoming)
        (void)welcome();
    m_whole->setCurrentIndex(welcoming ? 1 : 0);
    if (isVisible())
        revealFront();
}

bool Centre::isWelcoming() const
{
    return m_whole->currentIndex() == 1;
}

QSize Centre::minimumSizeHint() const
{
    constexpr int mostLines = 10;
    return QWidget::minimumSizeHint().boundedTo({QWIDGETSIZE_MAX, mostLines * fontMetrics().height()});
}

void Centre::paintEvent(QPaintEvent *)
{
    const Theme &theme = Theme::current();
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(QPen(m_hasFocusWithin ? theme.accent : theme.border, 1));
    painter.setBrush(theme.panel);
    painter.drawRoundedRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5), 4, 4);
    painter.setPen(QPen(theme.border, 1));
    if (isWelcoming())
        return;
    painter.setRenderHint(QPainter::Antialiasing, false);
    painter.fillRect(QRect(1, 2, width() - 2, barHeight - 2), theme.header);
    painter.drawLine(0, barHeight, width(), barHeight);
}

} // namespace klineage::ui
