return answer()
