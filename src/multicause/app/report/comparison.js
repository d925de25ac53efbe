"use strict";
const slider = document.getElementById("slider");
const show = () => {
  document.getElementById("before").style.clipPath = `inset(0 ${100 - slider.value}% 0 0)`;
  document.getElementById("divider").style.left = `${slider.value}%`;
};
slider.addEventListener("input", show);
const drag = (event) => {
  if (!event.buttons) return;
  const box = event.currentTarget.getBoundingClientRect();
  slider.value = Math.round((100 * (event.clientX - box.left)) / box.width);
  show();
};
document.getElementById("compare").addEventListener("pointerdown", drag);
document.getElementById("compare").addEventListener("pointermove", drag);
show();
