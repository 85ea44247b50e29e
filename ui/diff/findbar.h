// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

class QLabel;
class QLineEdit;

namespace klineage::ui {

/// The line to search in. It finds nothing itself.
class FindBar : public QWidget
{
    Q_OBJECT

public:
    explicit FindBar(QWidget *parent = nullptr);

    void open(const QString &text); ///< an empty text keeps the last one
    [[nodiscard]] QString text() const;
    /// current is 0-based; -1: none.
    void setCount(int current, int count, bool truncated);

signals:
    void textChanged(const QString &text);
    void nextWanted();
    void previousWanted();
    void closed();

protected:
    void keyPressEvent(QKeyEvent *event) override;

private:
    void close();

    QLineEdit *m_edit;
    QLabel *m_count;
};

} // namespace klineage::ui
