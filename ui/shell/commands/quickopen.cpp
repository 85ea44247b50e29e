// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/commands/quickopen.h"

#include "ui/shell/commands/quickopendelegate.h"
#include "ui/style/theme.h"

#include <QApplication>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QListView>
#include <QPainter>
#include <QVBoxLayout>

namespace klineage::ui {

namespace {

constexpr int panelWidth = 620;
constexpr int visibleRows = 12;

} // namespace

QuickOpen::QuickOpen(QWidget *window)
    : QFrame(window)
    , m_model(new QuickOpenModel(this))
    , m_field(new QLineEdit)
    , m_list(new QListView)
    , m_none(new QLabel(tr("Nothing matches.")))
{
    hide();
    m_field->setObjectName(QStringLiteral("paletteField"));
    QFont large = m_field->font();
    large.setPointSizeF(large.pointSizeF() * 1.18);
    m_field->setFont(large);
    m_list->setModel(m_model);
    m_list->setItemDelegate(new QuickOpenDelegate(m_model, m_list));
    m_list->setUniformItemSizes(true);
    m_list->setFrameShape(QFrame::NoFrame);
    m_list->setFocusPolicy(Qt::NoFocus);
    m_list->setMouseTracking(true);
    m_list->setAccessibleName(tr("Matches"));
    m_none->setMargin(12);
    m_none->setForegroundRole(QPalette::PlaceholderText);
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(1, 1, 1, 5);
    layout->setSpacing(0);
    layout->addWidget(m_field);
    layout->addWidget(m_list, 1);
    layout->addWidget(m_none);

    m_field->installEventFilter(this);
    window->installEventFilter(this);
    connect(m_field, &QLineEdit::textChanged, this, [this](const QString &text) {
        m_model->setPattern(text);
        m_list->setCurrentIndex(m_model->index(0));
        place();
    });
    connect(m_list, &QListView::clicked, this, &QuickOpen::run);
}

void QuickOpen::open(const QString &placeholder, std::vector<QuickEntry> entries)
{
    if (!isVisible())
        m_focusBefore = QApplication::focusWidget();
    m_field->clear();
    m_field->setPlaceholderText(placeholder);
    m_field->setAccessibleName(placeholder);
    m_model->setPattern({});
    m_model->setEntries(std::move(entries));
    m_list->setCurrentIndex(m_model->index(0));
    place();
    show();
    raise();
    m_field->setFocus();
}

/// Below the top bar, in the middle; as high as its rows.
void QuickOpen::place()
{
    const int rows = std::min(visibleRows, m_model->rowCount());
    const int rowHeight = rows > 0 ? m_list->sizeHintForRow(0) : 0;
    m_list->setVisible(rows > 0);
    m_none->setVisible(rows == 0);
    m_list->setFixedHeight(std::max(1, rows * rowHeight));
    const QWidget *window = parentWidget();
    const int width = std::min(panelWidth, window->width() - 40);
    const int height =
        m_field->sizeHint().height() + (rows > 0 ? rows * rowHeight : m_none->sizeHint().height()) + 6;
    setGeometry((window->width() - width) / 2, 46, width, height);
}

void QuickOpen::dismiss(bool restoreFocus)
{
    hide();
    if (restoreFocus && m_focusBefore)
        m_focusBefore->setFocus();
}

void QuickOpen::run(const QModelIndex &index)
{
    if (!index.isValid())
        return;
    const std::function<void()> act = m_model->entry(index.row()).act;
    dismiss(true);
    if (act)
        act();
}

void QuickOpen::moveBy(int by)
{
    const int count = m_model->rowCount();
    if (count == 0)
        return;
    const int row = (m_list->currentIndex().row() + by + count) % count;
    m_list->setCurrentIndex(m_model->index(row));
}

bool QuickOpen::eventFilter(QObject *watched, QEvent *event)
{
    if (watched == parentWidget() && event->type() == QEvent::Resize && isVisible())
        place();
    if (watched != m_field)
        return QFrame::eventFilter(watched, event);
    if (event->type() == QEvent::FocusOut
        && static_cast<QFocusEvent *>(event)->reason() != Qt::PopupFocusReason
        && static_cast<QFocusEvent *>(event)->reason() != Qt::ActiveWindowFocusReason) {
        dismiss(false);
        return false;
    }
    if (event->type() != QEvent::KeyPress)
        return QFrame::eventFilter(watched, event);
    switch (static_cast<QKeyEvent *>(event)->key()) {
    case Qt::Key_Escape:
        dismiss(true);
        return true;
    case Qt::Key_Return:
    case Qt::Key_Enter:
        run(m_list->currentIndex());
        return true;
    case Qt::Key_Down:
        moveBy(1);
        return true;
    case Qt::Key_Up:
        moveBy(-1);
        return true;
    case Qt::Key_PageDown:
        moveBy(std::min(visibleRows, m_model->rowCount() - 1 - m_list->currentIndex().row()));
        return true;
    case Qt::Key_PageUp:
        moveBy(-std::min(visibleRows, m_list->currentIndex().row()));
        return true;
    default:
        return QFrame::eventFilter(watched, event);
    }
}

void QuickOpen::paintEvent(QPaintEvent *)
{
    const Theme &theme = Theme::current();
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(QPen(blend(theme.dim, theme.panel, 0.6), 1));
    painter.setBrush(theme.panel);
    painter.drawRoundedRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5), 6, 6);
}

} // namespace klineage::ui
