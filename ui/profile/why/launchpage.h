// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trial/analysis/launch/launchnumbers.h"

#include <QWidget>

class QLabel;
class QTableView;

namespace klineage::ui {

class LaunchModel;

/// The launch plans of both sides in numbers, what differs marked, and below in a sentence what limits how many blocks are resident.
class LaunchPage : public QWidget
{
    Q_OBJECT

public:
    explicit LaunchPage(QWidget *parent = nullptr);

    void setSides(const std::vector<gate::LaunchNumbers> &left, const QString &leftName,
                  const std::vector<gate::LaunchNumbers> &right, const QString &rightName);
    [[nodiscard]] LaunchModel *model() const { return m_model; }
    [[nodiscard]] QString limits() const; ///< the sentences

protected:
    bool eventFilter(QObject *watched, QEvent *event) override; ///< the room of the columns

private:
    void fitColumns();

    LaunchModel *m_model;
    QTableView *m_table;
    QLabel *m_limits;
};

} // namespace klineage::ui
