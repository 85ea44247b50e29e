// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/plots/table/plottable.h"

#include <QTableView>

#include <functional>

namespace klineage::ui {

/// The table behind a picture. It is made when somebody looks: seen or unseen, fill() makes it up to date.
class PlotTableView : public QTableView
{
    Q_OBJECT

public:
    explicit PlotTableView(QWidget *parent = nullptr);

    /// Who makes the table; called by fill() after outdate().
    void setMaker(std::function<PlotTable()> maker);
    void outdate(); ///< what the picture shows has changed
    void fill();
    /// Marks the row of what is selected elsewhere; nothing where it has none.
    void select(const QString &id);

    /// Letters are commands here, not a search.
    void keyboardSearch(const QString &) override {}

signals:
    void rowChosen(const QString &id); ///< by a person

protected:
    void showEvent(QShowEvent *event) override;

private:
    void mark();

    PlotTableModel *m_model;
    std::function<PlotTable()> m_maker;
    QString m_selected;
    bool m_isOutdated = false;
    bool m_isMarking = false;
};

} // namespace klineage::ui
