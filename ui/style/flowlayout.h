// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QLayout>
#include <QList>

#include <memory>

namespace klineage::ui {

/// Widgets in rows, each as wide as it wishes; what does not fit goes on in the next row. What is left of a row goes to its widgets
/// that expand. It is as wide at least as its widest widget.
class FlowLayout : public QLayout
{
public:
    explicit FlowLayout(int spacing, QWidget *parent = nullptr);
    ~FlowLayout() override;

    void addItem(QLayoutItem *item) override;
    [[nodiscard]] int count() const override;
    [[nodiscard]] QLayoutItem *itemAt(int index) const override;
    QLayoutItem *takeAt(int index) override;
    [[nodiscard]] Qt::Orientations expandingDirections() const override { return Qt::Horizontal; }
    [[nodiscard]] bool hasHeightForWidth() const override { return true; }
    [[nodiscard]] int heightForWidth(int width) const override;
    [[nodiscard]] QSize sizeHint() const override;
    [[nodiscard]] QSize minimumSize() const override;
    void setGeometry(const QRect &rect) override;

private:
    struct Row {
        QList<QLayoutItem *> items;
        int width = 0; ///< of the items and what is between them
        int height = 0;
    };
    [[nodiscard]] QList<Row> rowsIn(int width) const;
    void place(const Row &row, const QRect &rect) const;

    QList<QLayoutItem *> m_items;
};

} // namespace klineage::ui
