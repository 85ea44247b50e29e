// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/skills/relations.h"

#include <QWidget>

namespace klineage::ui {

/// The cards around one, a row each: what it requires above it, what it makes possible below it, with a line from each that provides to
/// each that requires. Up and Down move, Return goes to the card. The same in words is the list of the page that it stands on.
class RelationGraph : public QWidget
{
    Q_OBJECT

public:
    explicit RelationGraph(QWidget *parent = nullptr);

    void setSurroundings(const skills::Surroundings &around);
    /// Of each row, as it is painted.
    [[nodiscard]] QStringList rows() const;
    [[nodiscard]] int currentRow() const { return m_current; }
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override { return {0, sizeHint().height()}; }

signals:
    void cardChosen(const QString &card);

protected:
    void paintEvent(QPaintEvent *event) override;
    void keyPressEvent(QKeyEvent *event) override;
    void mouseReleaseEvent(QMouseEvent *event) override;

private:
    struct Row {
        QString card;
        int column = 0;
    };
    void setCurrent(int row);
    void chooseRow(int row);
    [[nodiscard]] int rowHeight() const;
    [[nodiscard]] QPointF dot(int row) const;
    [[nodiscard]] QString inWords(int row) const;

    std::vector<Row> m_rows;                  ///< by column, then by name
    std::vector<std::pair<int, int>> m_edges; ///< rows: provider, requirer
    int m_firstColumn = 0;
    int m_lastColumn = 0;
    int m_current = 0;
};

} // namespace klineage::ui
