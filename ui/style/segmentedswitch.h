// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QStringList>
#include <QWidget>

namespace klineage::ui {

/// A few choices side by side, one of them taken. Left and Right move, a click takes.
class SegmentedSwitch : public QWidget
{
    Q_OBJECT

public:
    enum class Size { Normal, Small };

    explicit SegmentedSwitch(const QStringList &labels, Size size = Size::Normal, QWidget *parent = nullptr);

    [[nodiscard]] int currentIndex() const { return m_current; }
    /// Emits currentChanged when it differs. -1: none is taken.
    void setCurrentIndex(int index);
    [[nodiscard]] QStringList labels() const { return m_labels; }
    void setToolTips(const QStringList &tips) { m_tips = tips; }

    [[nodiscard]] QRect segmentRect(int index) const;
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override { return sizeHint(); }

signals:
    void currentChanged(int index);
    void chosen(int index); ///< by the user, even the one already taken

protected:
    bool event(QEvent *event) override;
    void paintEvent(QPaintEvent *event) override;
    void mousePressEvent(QMouseEvent *event) override;
    void mouseMoveEvent(QMouseEvent *event) override;
    void leaveEvent(QEvent *event) override;
    void keyPressEvent(QKeyEvent *event) override;

private:
    [[nodiscard]] int segmentAt(const QPoint &position) const;
    [[nodiscard]] QFont segmentFont() const;
    void choose(int index);

    QStringList m_labels;
    QStringList m_tips;
    Size m_size;
    int m_current = 0;
    int m_hovered = -1;
};

} // namespace klineage::ui
