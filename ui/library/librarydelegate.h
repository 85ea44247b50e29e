// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QStyledItemDelegate>

namespace klineage::ui {

class Viewed;

/// Paints a row of the library: name at the left with the letters that the filter matched, value or chip at the right.
class LibraryDelegate : public QStyledItemDelegate
{
    Q_OBJECT

public:
    using QStyledItemDelegate::QStyledItemDelegate;

    void setPattern(const QString &pattern) { m_pattern = pattern; }
    void setViewed(const Viewed *viewed) { m_viewed = viewed; }

    void paint(QPainter *painter, const QStyleOptionViewItem &option,
               const QModelIndex &index) const override;
    QSize sizeHint(const QStyleOptionViewItem &option, const QModelIndex &index) const override;

private:
    void paintSection(QPainter *painter, const QStyleOptionViewItem &option, const QModelIndex &index) const;
    static void paintRunsHere(QPainter *painter, const QRect &rect);
    int paintViewed(QPainter *painter, const QRect &rect, const QModelIndex &index) const;
    int paintRight(QPainter *painter, const QStyleOptionViewItem &option, const QModelIndex &index) const;

    QString m_pattern;
    const Viewed *m_viewed = nullptr;
};

} // namespace klineage::ui
