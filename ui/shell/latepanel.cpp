// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/latepanel.h"

#include <QLayout>

#include <memory>
#include <utility>

namespace klineage::ui {

namespace {

/// Gives the panel all the room within the margins. Unlike a row or column of one it asks for no height at a width: the height that a dock or
/// page has is not the panel's to choose, and to answer has all wrapped text of the panel laid out once more.
class OnePanelLayout : public QLayout
{
public:
    using QLayout::QLayout;

    void addItem(QLayoutItem *item) override { m_item.reset(item); }
    [[nodiscard]] int count() const override { return m_item ? 1 : 0; }
    [[nodiscard]] QLayoutItem *itemAt(int index) const override
    {
        return index == 0 ? m_item.get() : nullptr;
    }
    QLayoutItem *takeAt(int index) override { return index == 0 ? m_item.release() : nullptr; }
    [[nodiscard]] QSize sizeHint() const override
    {
        return withMargins(m_item ? m_item->sizeHint() : QSize());
    }
    [[nodiscard]] QSize minimumSize() const override
    {
        return withMargins(m_item ? m_item->minimumSize() : QSize());
    }

    void setGeometry(const QRect &rect) override
    {
        QLayout::setGeometry(rect);
        if (m_item)
            m_item->setGeometry(rect.marginsRemoved(contentsMargins()));
    }

private:
    [[nodiscard]] QSize withMargins(const QSize &size) const
    {
        return size.expandedTo({0, 0}).grownBy(contentsMargins());
    }

    std::unique_ptr<QLayoutItem> m_item;
};

} // namespace

LatePanel::LatePanel(const QMargins &margins, QWidget *parent)
    : QWidget(parent)
{
    auto *layout = new OnePanelLayout(this);
    layout->setContentsMargins(margins);
}

void LatePanel::setPanel(QWidget *panel)
{
    m_panel = panel;
    m_panel->hide(); // before it is in the layout, which shows its widgets
    layout()->addWidget(m_panel);
}

void LatePanel::reveal()
{
    if (m_panel && !std::exchange(m_isRevealed, true))
        m_panel->show();
}

} // namespace klineage::ui
