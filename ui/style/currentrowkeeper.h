// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QPersistentModelIndex>

class QAbstractItemView;
class QTimer;

namespace klineage::ui {

/// Keeps the current row of a list in view when the list gets another size or font, unless a person has scrolled away from it.
class CurrentRowKeeper : public QObject
{
public:
    explicit CurrentRowKeeper(QAbstractItemView *view); ///< which owns it

    void keepSoon(); ///< once the list is laid out

    bool eventFilter(QObject *watched, QEvent *event) override;

private:
    [[nodiscard]] bool isInView() const;

    QAbstractItemView *m_view;
    QTimer *m_soon;
    QPersistentModelIndex m_left; ///< the current row that a person has scrolled away from
};

} // namespace klineage::ui
